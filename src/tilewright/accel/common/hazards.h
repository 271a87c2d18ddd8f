// Which earlier instructions of other queues one has to wait for, from the memory it touches.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "tilewright/accel/common/queues.h"

namespace tilewright::accel {

/// Per queue, the last instruction that has to be complete: its index in the stream + 1; 0: none.
/// One is enough, as a queue completes its instructions in order.
using Waits = std::array<uint32_t, kMaxQueues>;

/// Accesses to one memory, as disjoint intervals with the last write and the reads since.
class AccessMap {
 public:
  /// Adds to `waits` what an access of `range` by instruction `stamp` - 1 conflicts with, and
  /// remembers it. requires: stamps ascend.
  void access(const Range& range, bool write, int queue, uint32_t stamp, Waits& waits);

 private:
  struct Segment {
    uint64_t end = 0;
    int writer = -1;
    uint32_t written = 0;
    Waits read{};  ///< since the write: whoever writes next waits for these and the write
  };
  using Segments = std::map<uint64_t, Segment>;

  Segments::iterator split(uint64_t at);

  Segments segments_;  ///< by begin
};

/// Waits of each instruction. `queue`: of each. requires: what `check_accesses` accepts.
std::vector<Waits> find_waits(const Queues& queues, const std::vector<int>& queue,
                              const std::vector<Footprint>& footprints);

}  // namespace tilewright::accel
