#include "tilewright/accel/dpu/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tilewright/accel/common/tokens.h"
#include "tilewright/accel/dpu/operands.h"

namespace tilewright::dpu {
namespace {

constexpr size_t kNothing = static_cast<size_t>(-1);

/// The queues with one more memory, whose words order instructions across barriers.
accel::Queues queues_with_barriers() {
  accel::Queues out = queues();
  const int memory = static_cast<int>(out.memories.size());
  out.memories.emplace_back("barriers");
  for (accel::Queue& queue : out.list) {
    queue.reads.push_back(memory);
    queue.writes.push_back(memory);
  }
  return out;
}

}  // namespace

struct Builder::State {
  explicit State(const Config& design) : config(design) {}

  std::vector<accel::Footprint> with_barriers() const;
  Result<std::vector<Insn>> by_addresses(std::vector<size_t>& places) const;
  std::vector<Insn> by_groups(std::vector<size_t>& places) const;

  Config config;
  Inits inits;
  std::vector<Insn> insns;
  std::vector<int> queue;  ///< of each instruction
  std::vector<accel::Footprint> footprints;
  std::vector<size_t> barriers;  ///< instructions before each; ascending
  std::vector<size_t> groups;    ///< likewise, of barriers and groups
  std::vector<Span> spans;       ///< `end` is set by `finish`
};

/// The footprints, so that each unit's first instruction behind a barrier conflicts with each
/// unit's last one before it: the last ones write a word of their own, the first ones read all.
std::vector<accel::Footprint> Builder::State::with_barriers() const {
  std::vector<accel::Footprint> out = footprints;
  const int memory = static_cast<int>(queues().memories.size());
  std::array<size_t, kUnits> last;
  last.fill(kNothing);
  std::array<bool, kUnits> waits{};
  uint64_t words = 0;
  size_t next = 0;
  for (size_t i = 0; i < insns.size(); ++i) {
    if (next < barriers.size() && barriers[next] == i) {
      words = uint64_t{kUnits} * ++next;
      for (size_t u = 0; u < kUnits; ++u)
        if (last[u] != kNothing)
          out[last[u]].push_back(accel::one_row(memory, words + u, words + u + 1, true));
      waits.fill(true);
    }
    const auto unit = static_cast<size_t>(queue[i]);
    if (waits[unit]) out[i].push_back(accel::one_row(memory, words, words + kUnits, false));
    waits[unit] = false;
    last[unit] = i;
  }
  return out;
}

/// `places`: where each instruction is in the result.
Result<std::vector<Insn>> Builder::State::by_addresses(std::vector<size_t>& places) const {
  const std::vector<accel::Slot> slots = TW_TRY(
      barriers.empty() ? accel::insert_tokens(queues(), queue, footprints)
                       : accel::insert_tokens(queues_with_barriers(), queue, with_barriers()));
  std::vector<Insn> out;
  for (const accel::Slot& slot : slots) {
    Insn insn;
    if (slot.given == accel::kNoOp) {
      insn.op = Nop{slot.queue};
    } else {
      insn.op = insns[slot.given].op;
      places[slot.given] = out.size();
    }
    insn.dpon = static_cast<uint8_t>(slot.takes);
    insn.dpby = static_cast<uint8_t>(slot.gives);
    out.push_back(insn);
  }
  return out;
}

/// Whatever a group has in a unit waits for all other units of the group before: the unit's first
/// instruction takes a token of each, its last one gives one to each unit of the next group.
std::vector<Insn> Builder::State::by_groups(std::vector<size_t>& places) const {
  std::vector<Insn> out = insns;
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  unsigned before = 0;
  std::array<size_t, kUnits> last_before{};
  size_t begin = 0;
  for (size_t g = 0; begin < insns.size(); ++g) {
    const size_t end = g < groups.size() ? groups[g] : insns.size();
    unsigned units = 0;
    std::array<size_t, kUnits> last{};
    for (size_t i = begin; i < end; ++i) {
      const auto unit = static_cast<size_t>(queue[i]);
      const unsigned own = 1u << unit;
      if ((units & own) == 0) {
        out[i].dpon = static_cast<uint8_t>(before & ~own);
        for (size_t u = 0; u < kUnits; ++u)
          if (u != unit && (before >> u & 1) != 0)
            out[last_before[u]].dpby = static_cast<uint8_t>(out[last_before[u]].dpby | own);
      }
      units |= own;
      last[unit] = i;
    }
    if (units != 0) {
      before = units;
      last_before = last;
    }
    begin = end;
  }
  return out;
}

Builder::Builder(const Config& config) : state_(std::make_unique<State>(config)) {}
Builder::~Builder() = default;
Builder::Builder(Builder&&) noexcept = default;

Status Builder::add(const Op& op) {
  State& state = *state_;
  const Insn insn{0, 0, op};
  if (std::holds_alternative<End>(op)) return fail(ErrorKind::Invalid, "END is added by `finish`");
  TW_TRY_STATUS(check_fields(insn, ""));
  state.inits.update(op);
  if (!state.inits.complete_for(op))
    return fail(ErrorKind::Invalid, fmt::format("{} comes before its INIT", op_name(op)));
  TW_TRY_STATUS(check_ranges(state.config, insn, state.inits));
  state.insns.push_back(insn);
  state.queue.push_back(static_cast<int>(unit_of(insn)));
  state.footprints.push_back(footprint(state.config, insn, state.inits));
  return {};
}

void Builder::barrier() {
  State& state = *state_;
  const size_t at = state.insns.size();
  if (at > 0 && (state.barriers.empty() || state.barriers.back() != at))
    state.barriers.push_back(at);
  begin_group();
}

void Builder::begin_group() {
  State& state = *state_;
  const size_t at = state.insns.size();
  if (at > 0 && (state.groups.empty() || state.groups.back() != at)) state.groups.push_back(at);
}

void Builder::begin_span(const std::string& layer) {
  state_->spans.push_back({layer, state_->insns.size(), 0});
}

size_t Builder::size() const { return state_->insns.size(); }

Result<Run> Builder::finish(bool addresses) {
  State& state = *state_;
  std::vector<size_t> places(state.insns.size());
  Run run;
  run.insns = addresses ? TW_TRY(state.by_addresses(places)) : state.by_groups(places);
  // A span begins where its first instruction is; instructions that only pass tokens belong to the
  // span before.
  run.spans = state.spans;
  for (size_t s = run.spans.size(); s-- > 0;) {
    Span& span = run.spans[s];
    span.begin = span.begin < places.size() ? places[span.begin] : run.insns.size();
    span.end = s + 1 < run.spans.size() ? run.spans[s + 1].begin : run.insns.size();
  }
  run.insns.push_back({0, 0, End{}});
  return run;
}

}  // namespace tilewright::dpu
