#include "tilewright/accel/vta/sim/clock.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::vta {
namespace {

constexpr size_t kMostTokens = 255;  // counters have 8 bits

}  // namespace

Clock::Clock(const Config& config, const std::vector<Insn>& insns, const Stream& stream)
    : config_(config),
      timing_(config.timing),
      insns_(insns),
      stream_(stream),
      times_(insns.size()),
      modules_(stream.modules.size()),
      tokens_(token_queues(stream)) {}

Status Clock::run() {
  start_batch(1);
  do {
    follow_causes();
  } while (grant());
  return check_end();
}

void Clock::follow_causes() {
  for (bool moved = true; moved;) {
    moved = dispatch();
    for (size_t m = 0; m < modules_.size(); ++m)
      while (advance(m)) moved = true;
  }
}

void Clock::start_batch(uint64_t at) {
  const size_t count =
      std::min<size_t>(static_cast<size_t>(timing_.fetch_batch), insns_.size() - fetched_);
  Reading& fetch = clients_[kFetch];
  fetch.active = count > 0;
  fetch.asks = at;
  fetch.bursts = Bursts(timing_, fetched_ * kInsnBytes, count * kInsnBytes);
  fetched_ += count;
}

/// Writes fetched commands to the queues of their modules, one per cycle, in order.
bool Clock::dispatch() {
  if (clients_[kFetch].active || dispatched_ == fetched_) return false;
  bool moved = false;
  for (; dispatched_ < fetched_; ++dispatched_) {
    const size_t m = stream_.place[dispatched_];
    ModuleState& module = modules_[m];
    const size_t position = module.visible.size();
    uint64_t at = dispatch_at_;
    if (const size_t room = static_cast<size_t>(timing_.command_queue); position >= room) {
      if (module.next <= position - room) return moved;
      at = std::max(at, times_[stream_.queues[m][position - room]].begin + 1);
    }
    module.visible.push_back(at + 1);
    dispatch_at_ = at + 1;
    moved = true;
  }
  start_batch(dispatch_at_);
  return moved;
}

/// Begins the next instruction of module m if all it needs is known.
bool Clock::advance(size_t m) {
  ModuleState& module = modules_[m];
  if (module.loading || module.next >= module.visible.size()) return false;
  const size_t index = stream_.queues[m][module.next];
  const TokenUse use = token_use(insns_[index].deps, m);
  InsnTime& time = times_[index];
  const uint64_t seen = module.visible[module.next];
  uint64_t at = std::max(module.free, seen);
  Stall stall = at > module.free ? Stall::Queue : Stall::None;
  const auto wait = [&](int queue, int from) {
    if (queue == kNoTokens) return true;
    const TokenQueue& tokens = tokens_[queue];
    if (tokens.taken.size() == tokens.pushed.size()) return false;
    const uint64_t there = tokens.pushed[tokens.taken.size()] + timing_.token_latency;
    if (there >= at && there > module.free)
      at = there, stall = Stall::Token, time.token_from = from;
    return true;
  };
  const int place = static_cast<int>(m);
  if (!wait(use.pop_prev, place - 1) || !wait(use.pop_next, place + 1)) return false;
  time.insn = static_cast<uint32_t>(index);
  time.ready = module.free;
  time.stall = stall;
  begin(m, index, at, use);
  return true;
}

void Clock::begin(size_t m, size_t index, uint64_t at, const TokenUse& use) {
  times_[index].begin = at;
  for (const int queue : {use.pop_prev, use.pop_next})
    if (queue != kNoTokens) tokens_[queue].taken.push_back(at);
  ++modules_[m].next;
  if (!reads(insns_[index])) return end(m, index, at + fixed_cycles(config_, insns_[index]));
  start_load(m, index, std::get<Transfer>(insns_[index].op));
}

void Clock::start_load(size_t m, size_t index, const Transfer& transfer) {
  const Client client = transfer.mem == Mem::Uop                               ? kUop
                        : transfer.mem == Mem::Inp || transfer.mem == Mem::Wgt ? kLoad
                                                                               : kAcc;
  Reading& reading = clients_[client];
  reading.first = request_cycle(timing_, times_[index].begin);
  reading.asks = reading.first;
  reading.bursts = Bursts(config_, transfer);
  reading.beats = 0;
  reading.pads = pad_elements(transfer);
  reading.module = m;
  reading.active = !reading.bursts.done();
  modules_[m].loading = reading.active;
  if (!reading.active) end(m, index, load_end(reading.first, 0, reading.pads, 0));
}

void Clock::end(size_t m, size_t index, uint64_t at) {
  times_[index].end = at;
  modules_[m].free = at;
  const TokenUse use = token_use(insns_[index].deps, m);
  for (const int queue : {use.push_prev, use.push_next})
    if (queue != kNoTokens) tokens_[queue].pushed.push_back(at - 1);
}

/// Grants the next burst, in order of time and then of priority; false if nobody asks. While the
/// reads of all clients go on, nothing else can change what is known.
bool Clock::grant() {
  for (;;) {
    uint64_t earliest = UINT64_MAX;
    for (const Reading& reading : clients_)
      if (reading.active) earliest = std::min(earliest, reading.asks);
    if (earliest == UINT64_MAX) return false;
    const uint64_t at = std::max(earliest, port_.place_free);
    size_t client = 0;
    while (!clients_[client].active || clients_[client].asks > at) ++client;
    Reading& reading = clients_[client];
    const uint64_t beats = reading.bursts.next().beats(timing_);
    const uint64_t last = port_.grant(timing_, at, beats);
    reading.beats += beats;
    reading.asks = at + 1;
    if (!reading.bursts.done()) continue;
    complete(static_cast<Client>(client), last);
    return true;
  }
}

void Clock::complete(Client client, uint64_t last_beat) {
  Reading& reading = clients_[client];
  reading.active = false;
  if (client == kFetch) {
    dispatch_at_ = last_beat + 2;
    return;
  }
  ModuleState& module = modules_[reading.module];
  module.loading = false;
  end(reading.module, stream_.queues[reading.module][module.next - 1],
      load_end(reading.first, last_beat, reading.pads, reading.beats));
}

Status Clock::check_end() const {
  std::vector<size_t> next, visible;
  std::vector<uint64_t> left;
  bool done = true;
  for (size_t m = 0; m < modules_.size(); ++m) {
    next.push_back(modules_[m].next);
    visible.push_back(modules_[m].visible.size());
    done = done && next[m] == stream_.queues[m].size();
  }
  for (const TokenQueue& queue : tokens_) left.push_back(queue.pushed.size() - queue.taken.size());
  if (!done) return tl::unexpected<Error>(deadlock(config_, insns_, stream_, next, left, visible));
  for (size_t q = 0; q < tokens_.size(); ++q)
    for (size_t k = kMostTokens; k < tokens_[q].pushed.size(); ++k) {
      const size_t oldest = k - kMostTokens;
      if (oldest < tokens_[q].taken.size() && tokens_[q].taken[oldest] <= tokens_[q].pushed[k])
        continue;
      return fail(ErrorKind::Invalid,
                  fmt::format("a token is lost in {}", queue_name(stream_, static_cast<int>(q))),
                  fmt::format("{} are outstanding in cycle {}, and the counter holds {}",
                              kMostTokens + 1, tokens_[q].pushed[k], kMostTokens));
    }
  TW_TRY_STATUS(check_leftover(stream_, left));
  if (const auto& stores = stream_.queues.back();
      !stores.empty() && times_[stores.back()].end > cycles())
    return fail(
        ErrorKind::Invalid,
        fmt::format("FINISH is not ordered after {}", describe(config_, insns_, stores.back())),
        fmt::format("FINISH ends in cycle {}, the store in {}", cycles(),
                    times_[stores.back()].end));
  return {};
}

}  // namespace tilewright::vta
