#include "tilewright/accel/vta/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "tilewright/accel/vta/ranges.h"
#include "tilewright/accel/vta/tokens.h"
#include "tilewright/accel/vta/uop_cache.h"
#include "tilewright/accel/vta/uop_plan.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

constexpr uint32_t kMostRows = 65535, kMostPad = 15, kMostUops = 65535;
// Loads begin at a new 64-byte line: no bus in use is wider, so no beat is wasted.
constexpr uint64_t kLineUops = 16;

/// Micro-op memory as far as one LOAD UOP can fill it.
uint32_t uop_depth(const Config& config) {
  return static_cast<uint32_t>(std::min<int64_t>(config.depth(Mem::Uop), kMostUops));
}

Loops* loops_of(Insn& insn) {
  if (Gemm* gemm = std::get_if<Gemm>(&insn.op)) return &gemm->loops;
  if (Alu* alu = std::get_if<Alu>(&insn.op)) return &alu->loops;
  return nullptr;
}

/// One transfer as several whose fields hold its values: at most 65535 rows, 15 rows of padding at
/// each end, and single rows if the stride has more than 16 bits.
std::vector<Transfer> split(const Transfer& whole) {
  std::vector<Transfer> parts;
  const uint32_t width = whole.sram_width();
  const uint32_t most_rows = whole.x_stride > kMostRows ? 1 : kMostRows;
  uint32_t top = whole.y_pad_top, rows = whole.y_size, bottom = whole.y_pad_bottom;
  Transfer part = whole;
  do {
    part.y_pad_top = std::min(top, kMostPad);
    top -= part.y_pad_top;
    part.y_size = top > 0 ? 0 : std::min(rows, most_rows);
    rows -= part.y_size;
    part.y_pad_bottom = top > 0 || rows > 0 ? 0 : std::min(bottom, kMostPad);
    bottom -= part.y_pad_bottom;
    part.x_stride = part.y_size > 1 || whole.x_stride <= kMostRows ? whole.x_stride : part.x_size;
    parts.push_back(part);
    part.sram += width * (part.y_pad_top + part.y_size + part.y_pad_bottom);
    part.dram += part.y_size * whole.x_stride;
  } while (top > 0 || rows > 0 || bottom > 0);
  return parts;
}

}  // namespace

struct Builder::State {
  State(const Config& design, const BuilderOptions& chosen)
      : config(design),
        options(chosen),
        image(chosen.base, kDramLimit),
        kernels(uop_depth(design)) {}

  Status append(const Insn& insn, std::span<const Uop> uops = {});
  Status compute(std::vector<Uop> uops, Insn insn);
  UopPlan plan_uops() const;
  std::vector<Transfer> make_loads(const UopPlan& plan, std::string& words) const;
  void place_uops(const UopPlan& plan);
  void insert_loads(const UopPlan& plan, const std::vector<Transfer>& loads, uint64_t address);

  Config config;
  BuilderOptions options;
  accel::ImageBuilder image;
  std::vector<Insn> linear;
  std::vector<accel::Footprint> footprints;
  std::vector<Span> spans;
  KernelTable kernels;
  std::vector<UopUse> uses;
};

Status Builder::State::append(const Insn& insn, std::span<const Uop> uops) {
  TW_TRY_STATUS(fits(config, insn));
  linear.push_back(insn);
  footprints.push_back(footprint(config, insn, uops));
  return {};
}

/// A GEMM or ALU instruction; where its micro-ops are on chip is decided in the end.
Status Builder::State::compute(std::vector<Uop> uops, Insn insn) {
  Loops& loops = *loops_of(insn);
  loops.uop_begin = 0;
  loops.uop_end = static_cast<uint32_t>(uops.size());
  if (loops.steps() == 0) return {};
  TW_TRY_STATUS(check_indices(config, uops, loops, std::holds_alternative<Gemm>(insn.op)));
  const size_t kernel = TW_TRY(kernels.add(uops));
  TW_TRY_STATUS(append(insn, uops));
  uses.push_back({linear.size() - 1, kernel});
  return {};
}

UopPlan Builder::State::plan_uops() const {
  const uint32_t depth = uop_depth(config);
  if (!options.merge_uops) return plan_one_by_one(kernels.kernels(), uses, depth);
  std::vector<size_t> begins;
  for (const Span& span : spans) begins.push_back(span.begin);
  return plan_merged(kernels.kernels(), uses, begins, depth);
}

/// The planned loads and the words they read, with DRAM addresses from the first word on. Loads of
/// the same kernels share their words.
std::vector<Transfer> Builder::State::make_loads(const UopPlan& plan, std::string& words) const {
  constexpr size_t kWord = sizeof(uint32_t);
  std::vector<Transfer> loads;
  std::map<std::vector<size_t>, Transfer> known;
  for (const UopLoad& load : plan.loads) {
    const auto [entry, fresh] = known.try_emplace(load.kernels);
    Transfer& transfer = entry->second;
    if (fresh) {
      words.resize((words.size() / kWord + kLineUops - 1) / kLineUops * kLineUops * kWord);
      transfer.mem = Mem::Uop;
      transfer.dram = static_cast<uint32_t>(words.size() / kWord);
      for (const size_t kernel : load.kernels)
        words += encode_kernel(config, kernels.kernels()[kernel]);
      transfer.y_size = 1;
      transfer.x_size = static_cast<uint32_t>(words.size() / kWord) - transfer.dram;
      transfer.x_stride = transfer.x_size;
    }
    loads.push_back(transfer);
    loads.back().sram = load.begin;
  }
  return loads;
}

/// Puts the places of the micro-ops into the instructions.
void Builder::State::place_uops(const UopPlan& plan) {
  for (size_t u = 0; u < uses.size(); ++u) {
    const uint32_t begin = plan.begin[u];
    Loops& loops = *loops_of(linear[uses[u].insn]);
    loops.uop_begin += begin;
    loops.uop_end += begin;
    for (accel::Access& access : footprints[uses[u].insn])
      if (access.memory == number(Mem::Uop)) access.address += begin;
  }
}

/// Puts the loads into the stream; one at the begin of a span belongs to it.
void Builder::State::insert_loads(const UopPlan& plan, const std::vector<Transfer>& loads,
                                  uint64_t address) {
  const std::vector<Insn> insns = std::exchange(linear, {});
  std::vector<accel::Footprint> touched = std::exchange(footprints, {});
  size_t load = 0, span = 0;
  for (size_t i = 0; i <= insns.size(); ++i) {
    for (; span < spans.size() && spans[span].begin == i; ++span) spans[span].begin = linear.size();
    for (; load < loads.size() && plan.loads[load].before == i; ++load) {
      Transfer transfer = loads[load];
      transfer.dram += static_cast<uint32_t>(address / sizeof(uint32_t));
      Insn insn;
      insn.op = transfer;
      linear.push_back(insn);
      footprints.push_back(footprint(config, insn, {}));
    }
    if (i == insns.size()) break;
    linear.push_back(insns[i]);
    footprints.push_back(std::move(touched[i]));
  }
}

Builder::Builder(const Config& config, const BuilderOptions& options)
    : state_(std::make_unique<State>(config, options)) {}
Builder::~Builder() = default;
Builder::Builder(Builder&&) noexcept = default;

const Config& Builder::config() const { return state_->config; }

Result<uint64_t> Builder::allocate(const std::string& name, uint64_t bytes, uint64_t align) {
  return state_->image.allocate(name, bytes, align);
}

void Builder::write(uint64_t address, std::string_view bytes) {
  state_->image.write(address, bytes);
}

void Builder::add_input(Region region) { state_->image.add_input(std::move(region)); }
void Builder::add_output(Region region) { state_->image.add_output(std::move(region)); }

Status Builder::transfer(const Transfer& transfer) {
  State& state = *state_;
  if (transfer.sram_elements() == 0) return {};
  if (transfer.mem == Mem::Uop)
    return fail(ErrorKind::Invalid, "micro-ops are loaded by the instructions that use them");
  TW_TRY_STATUS(check_transfer(state.config, transfer));
  TW_TRY_STATUS(check_dram(state.config, transfer, state.image.base(), state.image.end()));
  if (std::max(transfer.x_pad_left, transfer.x_pad_right) > kMostPad)
    return fail(ErrorKind::Capacity, "padding at the ends of rows has 4 bits",
                fmt::format("{} left, {} right, at most {}", transfer.x_pad_left,
                            transfer.x_pad_right, kMostPad),
                "keep the padding in DRAM");
  for (const Transfer& part : split(transfer)) {
    Insn insn;
    insn.op = part;
    TW_TRY_STATUS(state.append(insn));
  }
  return {};
}

Status Builder::gemm(std::vector<Uop> uops, Loops loops, bool reset, bool replace_first) {
  Insn insn;
  insn.op = Gemm{reset, replace_first, loops};
  return state_->compute(std::move(uops), insn);
}

Status Builder::alu(AluOp op, std::vector<Uop> uops, Loops loops, std::optional<int16_t> imm) {
  Insn insn;
  insn.op = Alu{op, imm.has_value(), imm.value_or(0), loops};
  return state_->compute(std::move(uops), insn);
}

void Builder::begin_span(const std::string& layer) {
  state_->spans.push_back({layer, state_->linear.size(), 0});
}

Result<Program> Builder::finish() {
  State& state = *state_;
  if (!state.uses.empty()) {
    const UopPlan plan = state.plan_uops();
    std::string words;
    const std::vector<Transfer> loads = state.make_loads(plan, words);
    const uint64_t address = TW_TRY(allocate("micro-ops", words.size()));
    write(address, words);
    state.place_uops(plan);
    state.insert_loads(plan, loads, address);
  }
  Annotated annotated =
      TW_TRY(insert_tokens(state.config, state.linear, state.footprints, state.options.serial));
  Run run;
  const auto final_index = [&](size_t insn) {
    return insn < annotated.index.size() ? annotated.index[insn] : annotated.insns.size();
  };
  for (size_t i = 0; i < state.spans.size(); ++i) {
    Span span = state.spans[i];
    span.begin = final_index(span.begin);
    span.end =
        i + 1 < state.spans.size() ? final_index(state.spans[i + 1].begin) : annotated.insns.size();
    run.spans.push_back(std::move(span));
  }
  run.insns = std::move(annotated.insns);
  Program program;
  static_cast<accel::Image&>(program) = state.image.take();
  program.config = state.config;
  program.runs.push_back(std::move(run));
  program.producer = "tilewright";
  const Config config = state.config;
  const BuilderOptions chosen = state.options;
  state_ = std::make_unique<State>(config, chosen);
  return program;
}

}  // namespace tilewright::vta
