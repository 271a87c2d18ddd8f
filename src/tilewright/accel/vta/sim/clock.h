// When each instruction of a stream begins and ends (docs/vta-timing.md), by following causes, not
// cycles.
#pragma once

#include <array>
#include <vector>

#include "tilewright/accel/vta/sim/stream.h"
#include "tilewright/accel/vta/sim/timing.h"

namespace tilewright::vta {

/// Begin and end of instructions follow from tokens, commands and the end of the one before, as in
/// a data flow graph; only the read port has to decide between clients in order of time. So: follow
/// all causes that are known, then grant one burst, and again. A grant is final because whatever is
/// still unknown comes from a later grant and can only ask later.
class Clock {
 public:
  Clock(const Config& config, const std::vector<Insn>& insns, const Stream& stream);

  /// errors: Invalid (deadlock, tokens left or lost, FINISH before the end of a STORE).
  Status run();
  /// Per instruction of the stream.
  const std::vector<InsnTime>& times() const { return times_; }
  std::vector<InsnTime> take_times() { return std::move(times_); }
  uint64_t cycles() const { return times_.back().end; }

 private:
  /// In order of priority.
  enum Client : size_t { kFetch, kUop, kLoad, kAcc, kClients };

  /// A sequence of bursts of one client; `asks` is when the next request is valid.
  struct Reading {
    bool active = false;
    uint64_t asks = 0;
    Bursts bursts;
    uint64_t beats = 0;
    size_t module = 0;  ///< whose LOAD; unused by fetch
    uint64_t first = 0, pads = 0;
  };
  struct ModuleState {
    size_t next = 0;                ///< instructions done or running
    uint64_t free = 0;              ///< end of the one before
    bool loading = false;           ///< the last one begun still reads
    std::vector<uint64_t> visible;  ///< when commands reach the head, in order
  };
  struct TokenQueue {
    std::vector<uint64_t> pushed;  ///< cycle of each push
    std::vector<uint64_t> taken;
  };

  void follow_causes();
  bool dispatch();
  bool advance(size_t m);
  void begin(size_t m, size_t index, uint64_t at, const TokenUse& use);
  void end(size_t m, size_t index, uint64_t at);
  void start_load(size_t m, size_t index, const Transfer& transfer);
  void start_batch(uint64_t at);
  bool grant();
  void complete(Client client, uint64_t last_beat);
  Status check_end() const;

  const Config& config_;
  const Timing& timing_;
  const std::vector<Insn>& insns_;
  const Stream& stream_;
  std::vector<InsnTime> times_;
  std::vector<ModuleState> modules_;
  std::vector<TokenQueue> tokens_;
  std::array<Reading, kClients> clients_;
  ReadPort port_;
  size_t fetched_ = 0, dispatched_ = 0;  ///< instructions
  uint64_t dispatch_at_ = 0;  ///< first cycle in which the next can be written to a queue
};

}  // namespace tilewright::vta
