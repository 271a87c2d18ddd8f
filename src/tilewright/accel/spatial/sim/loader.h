// A LOAD while it runs: bursts of the read port become pieces, pieces become lines, lines wait for
// their banks.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "tilewright/accel/spatial/operands.h"

namespace tilewright::spatial {

/// Places in the box of a LOAD in order, zeros included, as pieces that lie side by side in the
/// scratchpad.
class BoxWalk {
 public:
  BoxWalk(const Design& design, const Load& load);
  bool done() const { return done_; }
  bool zero() const;
  uint32_t address() const;
  /// Bytes that can be taken together, if the beat has as many.
  uint32_t longest() const;
  void take(uint32_t bytes);

 private:
  uint32_t place(int axis) const;
  void advance(int axis);

  const Load& load_;
  uint32_t word_, banks_;
  std::array<uint32_t, kAxes> at_{}, offset_{};
  uint32_t lane_ = 0, block_ = 0, in_block_ = 0;  ///< of the axis of lanes
  bool done_ = false;
};

/// The data side of a read port with one burst that waits and one whose beats move.
class ReadPort {
 public:
  explicit ReadPort(const Design& design) : design_(design) {}
  bool ready() const { return !waiting_; }
  void request(uint64_t now) { waiting_ = now + uint64_t(design_.timing.read_latency); }
  /// What waits begins to move.
  void begin_cycle(uint64_t now) {
    if (moving_ || !waiting_ || now < std::max(*waiting_, free_)) return;
    moving_ = true;
    waiting_.reset();
  }
  bool offers() const { return moving_; }
  /// The cycle after `now` in which what waits can begin to move.
  uint64_t next(uint64_t now) const {
    return moving_ || !waiting_ ? now + 1 : std::max({*waiting_, free_, now + 1});
  }
  void finish_burst(uint64_t now) {
    moving_ = false;
    free_ = now + 1 + uint64_t(design_.timing.burst_gap);
  }

 private:
  const Design& design_;
  std::optional<uint64_t> waiting_;  ///< earliest cycle of its first beat
  uint64_t free_ = 0;
  bool moving_ = false;
};

class Loader {
 public:
  /// `first_cycle`: of its first request.
  Loader(const Design& design, const Load& load, uint64_t first_cycle, ReadPort& port);

  /// A line that has to be written in this cycle, if its banks are free.
  bool wants() const { return pending_ || (line_ && (walk_.done() || displaced_)); }
  /// Before `wants`: looks at what arrives in this cycle.
  void look(uint64_t now);
  /// Afterwards; true: it is done in this cycle.
  bool move(uint64_t now, bool granted);
  /// The cycle after `now` in which it can do something again.
  uint64_t next(uint64_t now) const {
    if (now + 1 < first_cycle_) return first_cycle_;
    const bool asks = runs_to_ask_ > 0 && port_.ready();
    return asks || piece_ > 0 || wants() || walk_.done() ? now + 1 : port_.next(now);
  }

 private:
  void request(uint64_t now);
  void take_data(uint64_t now, uint32_t bytes);
  bool fits(uint32_t first, uint32_t last) const {
    return first >= *line_ && last < *line_ + uint32_t(design_.banks);
  }

  const Design& design_;
  ReadPort& port_;
  uint64_t first_cycle_;
  BoxWalk walk_;
  uint64_t run_bytes_, runs_to_ask_, run_to_ask_ = 0;  ///< request side: bytes left of the run
  uint64_t run_left_ = 0, burst_left_ = 0;             ///< data side
  uint32_t beat_at_ = 0, bias_left_;
  std::optional<uint32_t> line_;  ///< first word of the line that is being filled
  bool pending_ = false;          ///< a line waits for its banks
  uint32_t piece_ = 0;            ///< bytes that are there in this cycle; 0: none
  bool displaced_ = false;        ///< the piece belongs to another line
};

}  // namespace tilewright::spatial
