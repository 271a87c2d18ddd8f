// When each instruction of a stream begins and ends (docs/dpu-timing.md), event by event. Internal.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "tilewright/accel/dpu/sim/stream.h"
#include "tilewright/accel/dpu/sim/tsim.h"

namespace tilewright::dpu {

/// The DDR port: one beat a cycle, for LOAD or for SAVE. While both want it they take turns.
class DdrPort {
 public:
  enum Client : size_t { kLoad, kSave };

  bool active(size_t client) const { return left_[client] > 0; }
  /// From the present cycle on. requires: not active; beats > 0.
  void ask(size_t client, uint64_t beats) { left_[client] = beats; }
  /// The cycle after the next last beat of any client; none if nobody asks.
  uint64_t next_end() const;
  /// requires: no client's last beat lies before the cycle before `cycle`.
  void advance(uint64_t cycle);

 private:
  /// Who gets the present cycle if both want it.
  size_t first() const { return save_next_ ? kSave : kLoad; }

  uint64_t now_ = 0;
  std::array<uint64_t, 2> left_{};
  bool save_next_ = false;
};

/// What happens to data while time goes by.
class Actions {
 public:
  virtual ~Actions() = default;
  virtual Status begin(size_t insn) = 0;
  virtual void done(size_t insn) = 0;
};

class Clock {
 public:
  /// requires: fields and ranges are right and every INIT is there.
  Clock(const Config& config, const std::vector<Insn>& insns, const Stream& stream,
        const Jitter& jitter);

  /// `actions` may be null. errors: Invalid (deadlock, tokens left or too many), Limit, those of
  /// the actions.
  Status run(Actions* actions, uint64_t max_cycles);
  uint64_t cycles() const { return cycles_; }
  std::vector<InsnTime> take_times() { return std::move(times_); }
  /// Busy cycles, and cycles in which units shared a port of a feature memory.
  void add_to(Counters& counters) const;

 private:
  struct Running {
    bool busy = false, on_port = false;
    size_t insn = 0;
    uint64_t end = 0;   ///< if not on the port
    uint64_t free = 0;  ///< when the unit last became idle
    uint64_t total = 0;
    uint8_t ports = 0;  ///< of the feature memories: bit m is read, bit m + 3 is written
  };
  struct Pending {
    uint64_t at = 0;
    size_t insn = 0;
  };

  bool end_units();
  bool give_tokens(Actions* actions);
  bool fetch();
  Result<bool> begin_units(Actions* actions);
  void begin(size_t unit, size_t insn);
  void find_stall(size_t unit, const Insn& insn, InsnTime& time) const;
  uint64_t next_event() const;
  void pass_to(uint64_t cycle);

  const Config& config_;
  const std::vector<Insn>& insns_;
  const Stream& stream_;
  uint64_t now_ = 0, cycles_ = 0, shared_ = 0;
  std::vector<uint64_t> duration_;  ///< beats of those that use the port
  std::vector<uint8_t> uses_port_;
  std::vector<uint8_t> ports_;
  std::vector<uint64_t> fetched_at_;
  std::vector<InsnTime> times_;
  std::array<Running, kUnits> units_{};
  std::array<std::deque<Pending>, kUnits> pending_;  ///< ended, but not done
  /// Cycles in which tokens were given, from unit to unit; and how many were taken.
  std::array<std::array<std::vector<uint64_t>, kUnits>, kUnits> given_;
  std::array<std::array<size_t, kUnits>, kUnits> taken_{};
  Progress progress_;
  Tokens tokens_{};
  DdrPort port_;
};

}  // namespace tilewright::dpu
