#include "tilewright/accel/spatial/sim/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "tilewright/accel/spatial/operands.h"
#include "tilewright/accel/spatial/sim/array.h"
#include "tilewright/accel/spatial/sim/count.h"
#include "tilewright/accel/spatial/sim/loader.h"

namespace tilewright::spatial {
namespace {

using accel::Stall;

constexpr uint64_t kNever = UINT64_MAX;

uint64_t ceil_of(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/// The commands of one queue, and the instruction that its module executes.
struct TimedModule {
  std::deque<std::pair<uint32_t, uint64_t>>
      waiting;  ///< instruction, cycle in which it was written
  bool busy = false;
  uint64_t free = 0;  ///< idle from this cycle on
  /// Nothing begins before this cycle, if nothing is written, given or ends until then.
  uint64_t look = 0;
  uint32_t insn = 0;
  InsnTime time;
  Stall stall = Stall::Idle;
  int token_from = -1;
};

/// Cycles from which on the tokens from one queue to another can be taken.
struct TokensBetween {
  std::deque<uint64_t> there;
};

class Machine {
 public:
  Machine(const Design& design, const std::vector<Insn>& insns, const LaunchOptions& options)
      : design_(design), insns_(insns), options_(options), port_(design) {
    next_write_ = uint64_t(design.timing.read_latency) + fetch_cycles();
  }

  Result<LaunchReport> run() {
    uint64_t last = 0;
    for (uint64_t now = 0; ended_ < insns_.size(); now = next(now)) {
      if (now >= options_.max_cycles)
        return fail(ErrorKind::Limit, "the launch takes more cycles than allowed",
                    fmt::format("{} cycles", options_.max_cycles));
      if (cycle(now)) last = now;
      // Nothing executes, nothing is on its way: a token, an instruction.
      if (!busy() && now > last + fetch_cycles() + 2 &&
          now > last + uint64_t(design_.timing.token_latency) + 2 && now > next_write_ + 2)
        return deadlock();
    }
    return finish();
  }

 private:
  /// The cycle after `now` in which something can change; nothing does in those between.
  uint64_t next(uint64_t now) const {
    if (array_) return now + 1;
    const uint64_t at = std::min(event_, loader_ ? loader_->next(now) : kNever);
    return at == kNever ? now + 1 : std::max(at, now + 1);
  }

  /// The cycle after `now` in which an instruction can be written, begin or end.
  uint64_t next_event(uint64_t now) const {
    uint64_t at = can_fetch() ? next_write_ : kNever;
    for (const TimedModule& m : modules_) at = std::min(at, m.look);
    for (const uint64_t end : {compute_end_, store_end_})
      if (end > now + 1) at = std::min(at, end - 1);
    return at;
  }

  uint64_t fetch_cycles() const {
    return ceil_of(uint64_t{kInsnBytes}, uint64_t(design_.bus_bytes));
  }
  bool busy() const {
    return std::any_of(modules_.begin(), modules_.end(),
                       [](const TimedModule& m) { return m.busy; });
  }
  TokensBetween& tokens(int from, int to) { return tokens_[size_t(from * kQueues + to)]; }

  static void wake(TimedModule& module) {
    if (!module.busy) module.look = module.free;
  }

  /// An instruction is left and its queue has a place.
  bool can_fetch() const {
    if (written_ == insns_.size()) return false;
    const TimedModule& module = modules_[size_t(insns_[written_].queue())];
    return int(module.waiting.size()) < design_.timing.command_queue;
  }

  bool fetch(uint64_t now) {
    if (now < next_write_ || !can_fetch()) return false;
    TimedModule& module = modules_[size_t(insns_[written_].queue())];
    module.waiting.emplace_back(uint32_t(written_++), now);
    wake(module);
    next_write_ = now + fetch_cycles();
    return true;
  }

  /// The instruction that begins in this cycle, if any.
  const Insn* begin(int queue, uint64_t now) {
    TimedModule& m = modules_[size_t(queue)];
    if (now < m.look) return nullptr;
    if (m.waiting.empty() || m.waiting.front().second >= now) {
      m.stall = Stall::Idle;
      m.look = m.waiting.empty() ? kNever : m.waiting.front().second + 1;
      return nullptr;
    }
    const Insn& insn = insns_[m.waiting.front().first];
    for (int from = 0; from < kQueues; ++from)
      if (insn.takes >> from & 1) {
        const auto& there = tokens(from, queue).there;
        if (there.empty() || there.front() > now) {
          m.stall = Stall::Token;
          m.token_from = from;
          m.look = there.empty() ? kNever : there.front();
          return nullptr;
        }
      }
    for (int from = 0; from < kQueues; ++from)
      if (insn.takes >> from & 1) tokens(from, queue).there.pop_front();
    m.insn = m.waiting.front().first;
    m.waiting.pop_front();
    m.busy = true;
    m.look = kNever;
    const bool waited = now > m.free;
    m.time = {m.insn,
              m.free,
              now,
              0,
              waited ? m.stall : Stall::None,
              waited && m.stall == Stall::Token ? m.token_from : -1};
    return &insn;
  }

  /// The instruction gives its tokens in the cycle before `when`.
  void end(Queue queue, uint64_t when) {
    TimedModule& m = modules_[size_t(queue)];
    m.busy = false;
    m.free = when;
    m.time.end = when;
    wake(m);
    for (int to = 0; to < kQueues; ++to)
      if (insns_[m.insn].gives >> to & 1) {
        tokens(int(queue), to).there.push_back(when - 1 + uint64_t(design_.timing.token_latency));
        wake(modules_[size_t(to)]);
      }
    report_.cycles = std::max(report_.cycles, when);
    ++ended_;
    busy_cycles(queue) += when - m.time.begin;
    if (options_.record_times) report_.times.push_back(m.time);
  }
  uint64_t& busy_cycles(Queue queue) {
    Counters& c = report_.counters;
    return queue == Queue::Load      ? c.load_busy
           : queue == Queue::Compute ? c.compute_busy
                                     : c.store_busy;
  }

  bool start(uint64_t now) {
    bool any = false;
    const Timing& t = design_.timing;
    if (const Insn* insn = begin(int(Queue::Load), now)) {
      const Load& load = std::get<Load>(insn->work);
      loader_.emplace(design_, load, now + uint64_t(std::max(1, t.load_overhead - 1)), port_);
      any = true;
    }
    if (const Insn* insn = begin(int(Queue::Compute), now)) {
      array_.emplace(design_, std::get<Compute>(insn->work),
                     now + uint64_t(std::max(1, t.compute_overhead - 1)));
      any = true;
    }
    if (const Insn* insn = begin(int(Queue::Store), now)) {
      const Store& store = std::get<Store>(insn->work);
      store_end_ = now + store_cycles(design_, store);
      any = true;
    }
    return any;
  }

  /// True: an instruction began, ended or was written.
  bool cycle(uint64_t now) {
    port_.begin_cycle(now);
    bool look = now >= event_;
    bool any = look && fetch(now);
    if (look) any |= start(now);
    if (loader_) loader_->look(now);
    const bool load = loader_ && loader_->wants(), array = array_ && array_->wants(now);
    // Who had the last access gives way.
    const bool to_load = load && !(array && load_was_last_);
    if (load || array) load_was_last_ = to_load;
    if (array_ && array_->cycle(now, array && !to_load)) {
      compute_end_ = now + uint64_t(fill_cycles(design_)) + 2;
      array_.reset();
      look = true;
    }
    if (loader_ && loader_->move(now, to_load)) {
      loader_.reset();
      end(Queue::Load, now + 1);
      any = true;
    }
    if (compute_end_ == now + 1) end(Queue::Compute, now + 1), any = true;
    if (store_end_ == now + 1) end(Queue::Store, now + 1), any = true;
    if (look || any) event_ = next_event(now);
    return any;
  }

  tl::unexpected<Error> deadlock() const {
    std::string waiting;
    for (const TimedModule& m : modules_)
      if (!m.waiting.empty())
        waiting +=
            fmt::format("{}instruction {}: {}", waiting.empty() ? "" : "; ",
                        m.waiting.front().first, name(insns_[m.waiting.front().first].queue()));
    return fail(ErrorKind::Invalid, "deadlock: no module can go on", waiting,
                "check the tokens that instructions take and give");
  }

  Result<LaunchReport> finish() {
    for (int from = 0; from < kQueues; ++from)
      for (int to = 0; to < kQueues; ++to)
        if (!tokens(from, to).there.empty())
          return fail(ErrorKind::Invalid, "the launch leaves tokens behind",
                      fmt::format("{} from {} to {}", tokens(from, to).there.size(),
                                  name(static_cast<Queue>(from)), name(static_cast<Queue>(to))));
    for (const Insn& insn : insns_) count(design_, insn, report_.counters);
    std::sort(report_.times.begin(), report_.times.end(),
              [](const InsnTime& a, const InsnTime& b) { return a.insn < b.insn; });
    return std::move(report_);
  }

  const Design& design_;
  const std::vector<Insn>& insns_;
  const LaunchOptions& options_;
  ReadPort port_;
  std::array<TimedModule, kQueues> modules_;
  std::array<TokensBetween, size_t{kQueues} * kQueues> tokens_;
  std::optional<Loader> loader_;
  std::optional<Array> array_;
  uint64_t compute_end_ = 0, store_end_ = 0;
  uint64_t event_ = 0;  ///< nothing is written, begins or ends before, but for LOADs
  size_t written_ = 0, ended_ = 0;
  uint64_t next_write_ = 0;
  bool load_was_last_ = false;
  LaunchReport report_;
};

}  // namespace

uint64_t store_cycles(const Design& design, const Store& store) {
  const Runs moved = runs(store);
  const auto word = uint64_t(design.bank_bytes), burst = uint64_t(design.burst_bytes);
  const uint64_t beats = std::max<uint64_t>(1, word / uint64_t(design.bus_bytes));
  // Elements end with a burst and with a row.
  const uint64_t row = uint64_t{store.axes.back().count} * uint64_t(stored_bytes(store));
  uint64_t elements = 0, row_left = row;
  for (uint64_t at = 0; at < moved.bytes; at += burst)
    for (uint64_t left = std::min(burst, moved.bytes - at); left > 0;) {
      const uint64_t bytes = std::min(left, row_left);
      elements += ceil_of(bytes, word);
      left -= bytes;
      row_left = bytes == row_left ? row : row_left - bytes;
    }
  const uint64_t bursts = ceil_of(moved.bytes, burst);
  return 2 + moved.count() * (bursts * uint64_t(design.timing.store_row_overhead) +
                              elements * (beats + uint64_t(design.timing.store_element_extra)));
}

Result<LaunchReport> simulate(const Design& design, const std::vector<Insn>& insns,
                              const LaunchOptions& options) {
  return Machine(design, insns, options).run();
}

}  // namespace tilewright::spatial
