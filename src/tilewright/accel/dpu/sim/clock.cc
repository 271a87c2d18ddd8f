#include "tilewright/accel/dpu/sim/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tilewright/accel/dpu/sim/timing.h"
#include "tilewright/base/rng.h"

namespace tilewright::dpu {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

/// The ports of feature memories that an instruction uses while its unit is busy.
uint8_t fm_ports(const Op& op, const Inits& inits) {
  unsigned ports = 0;
  const auto use = [&](int memory, bool write) {
    ports |= 1u << (memory + (write ? kMemories : 0));
  };
  if (const auto* load = std::get_if<Load>(&op); load != nullptr && load->mode == 0)
    use(load->bank_id / kBanks, true);
  if (const auto* save = std::get_if<Save>(&op)) use(save->bank_id / kBanks, false);
  const Operands operands = operands_of(op, inits);
  // A window can lie in the padding as a whole.
  for (const WordWindow& window : operands.reads)
    if (window.y.taps_inside() > 0 && window.x.taps_inside() > 0) use(window.rows.memory, false);
  if (!operands.reads.empty()) use(operands.write.rows.memory, true);
  return static_cast<uint8_t>(ports);
}

}  // namespace

uint64_t DdrPort::next_end() const {
  const size_t one = first(), other = 1 - one;
  if (active(one) && active(other)) return now_ + std::min(2 * left_[one] - 1, 2 * left_[other]);
  if (active(one)) return now_ + left_[one];
  return active(other) ? now_ + left_[other] : kNever;
}

void DdrPort::advance(uint64_t cycle) {
  const uint64_t passed = cycle - now_;
  if (passed == 0) return;
  now_ = cycle;
  const size_t one = first(), other = 1 - one;
  if (active(one) && active(other)) {
    left_[one] -= (passed + 1) / 2;
    left_[other] -= passed / 2;
    const size_t last = passed % 2 == 1 ? one : other;
    save_next_ = last == kLoad;
    return;
  }
  save_next_ = false;
  for (uint64_t& left : left_) left -= std::min(left, passed);
}

Clock::Clock(const Config& config, const std::vector<Insn>& insns, const Stream& stream,
             const Jitter& jitter)
    : config_(config),
      insns_(insns),
      stream_(stream),
      fetched_at_(stream.unit.size()),
      times_(stream.unit.size()) {
  Rng rng(jitter.seed);
  Inits inits;
  for (size_t i = 0; i < stream.unit.size(); ++i) {
    const Op& op = insns[i].op;
    inits.update(op);
    duration_.push_back(busy_cycles(config, op, inits));
    if (jitter.most > 0) duration_.back() += static_cast<uint64_t>(rng.below(jitter.most + 1));
    uses_port_.push_back(ddr_beats(config, op) > 0);
    ports_.push_back(fm_ports(op, inits));
  }
}

Status Clock::run(Actions* actions, uint64_t max_cycles) {
  while (true) {
    for (bool moved = true; moved;) {
      moved = end_units();
      moved = give_tokens(actions) || moved;
      moved = fetch() || moved;
      moved = TW_TRY(begin_units(actions)) || moved;
    }
    TW_TRY_STATUS(check_counters(tokens_));
    const uint64_t next = next_event();
    if (next == kNever) break;
    if (next > max_cycles)
      return fail(ErrorKind::Limit, "the launch takes more cycles than allowed",
                  fmt::format("{} at least, of {}", next, max_cycles));
    pass_to(next);
  }
  return check_end(insns_, stream_, progress_, tokens_);
}

/// Units whose instruction ends now become idle.
bool Clock::end_units() {
  bool moved = false;
  for (size_t u = 0; u < kUnits; ++u) {
    Running& unit = units_[u];
    if (!unit.busy || (unit.on_port ? port_.active(u) : unit.end > now_)) continue;
    unit.busy = false;
    unit.total += now_ - times_[unit.insn].begin;
    unit.free = now_;
    pending_[u].push_back({now_ + done_latency(config_, insns_[unit.insn].op), unit.insn});
    moved = true;
  }
  return moved;
}

/// What is done now gives its tokens, in the order of the queue.
bool Clock::give_tokens(Actions* actions) {
  bool moved = false;
  for (size_t u = 0; u < kUnits; ++u)
    while (!pending_[u].empty() && pending_[u].front().at <= now_) {
      const size_t index = pending_[u].front().insn;
      pending_[u].pop_front();
      if (actions != nullptr) actions->done(index);
      times_[index].end = now_;
      cycles_ = std::max(cycles_, now_);
      give(tokens_, insns_[index], u);
      for (size_t b = 0; b < kUnits; ++b)
        if ((insns_[index].dpby >> b & 1) != 0) given_[u][b].push_back(now_);
      moved = true;
    }
  return moved;
}

bool Clock::fetch() {
  const size_t before = progress_.next;
  progress_.fetch(stream_, static_cast<size_t>(config_.timing.queue));
  for (size_t i = before; i < progress_.next; ++i) fetched_at_[i] = now_;
  return progress_.next > before;
}

Result<bool> Clock::begin_units(Actions* actions) {
  bool moved = false;
  for (size_t u = 0; u < kUnits; ++u) {
    if (units_[u].busy || progress_.begun[u] == progress_.fetched[u]) continue;
    const size_t index = stream_.of_unit[u][progress_.begun[u]];
    if (!can_begin(tokens_, insns_[index], u)) continue;
    if (actions != nullptr)
      if (Status status = actions->begin(index); !status)
        return tl::unexpected<Error>(at_insn(std::move(status.error()), insns_, index));
    begin(u, index);
    moved = true;
  }
  return moved;
}

void Clock::begin(size_t unit, size_t insn) {
  InsnTime& time = times_[insn];
  Running& running = units_[unit];
  time.insn = static_cast<uint32_t>(insn);
  time.ready = running.free;
  time.begin = now_;
  find_stall(unit, insns_[insn], time);
  for (size_t a = 0; a < kUnits; ++a)
    if ((insns_[insn].dpon >> a & 1) != 0) ++taken_[a][unit];
  take(tokens_, insns_[insn], unit);
  ++progress_.begun[unit];
  running.busy = true;
  running.insn = insn;
  running.ports = ports_[insn];
  running.on_port = uses_port_[insn] != 0;
  running.end = now_ + duration_[insn];
  if (running.on_port) port_.ask(unit, duration_[insn]);
}

/// What an instruction that begins now waited for last.
void Clock::find_stall(size_t unit, const Insn& insn, InsnTime& time) const {
  uint64_t last = time.ready;
  if (fetched_at_[time.insn] > last) {
    last = fetched_at_[time.insn];
    time.stall = Stall::Queue;
  }
  for (size_t a = 0; a < kUnits; ++a) {
    if ((insn.dpon >> a & 1) == 0) continue;
    const uint64_t at = given_[a][unit][taken_[a][unit]];
    if (at <= last) continue;
    last = at;
    time.stall = Stall::Token;
    time.token_from = static_cast<int>(a);
  }
}

uint64_t Clock::next_event() const {
  uint64_t next = port_.next_end();
  for (size_t u = 0; u < kUnits; ++u) {
    if (units_[u].busy && !units_[u].on_port) next = std::min(next, units_[u].end);
    if (!pending_[u].empty()) next = std::min(next, pending_[u].front().at);
  }
  return next;
}

void Clock::pass_to(uint64_t cycle) {
  unsigned once = 0, twice = 0;
  for (const Running& unit : units_) {
    if (!unit.busy) continue;
    twice |= once & unit.ports;
    once |= unit.ports;
  }
  if (twice != 0) shared_ += cycle - now_;
  port_.advance(cycle);
  now_ = cycle;
}

void Clock::add_to(Counters& counters) const {
  counters.load_busy += units_[0].total;
  counters.save_busy += units_[1].total;
  counters.conv_busy += units_[2].total;
  counters.misc_busy += units_[3].total;
  counters.shared_port += shared_;
}

}  // namespace tilewright::dpu
