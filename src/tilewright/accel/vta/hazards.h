// Which earlier instructions of other modules one has to wait for, from the memory it touches.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "tilewright/accel/vta/footprint.h"

namespace tilewright::vta {

/// Most modules of a design.
inline constexpr int kMaxModules = 4;

/// Per module, the last instruction that has to be complete: its index in the stream + 1; 0: none.
/// One is enough, as a module completes its instructions in order.
using Waits = std::array<uint32_t, kMaxModules>;

/// Accesses to one address space, as disjoint intervals with the last write and the reads since.
class AccessMap {
 public:
  /// Adds to `waits` what an access of [begin, end) by instruction `stamp` - 1 conflicts with, and
  /// remembers it. requires: stamps ascend.
  void access(uint64_t begin, uint64_t end, bool write, int module, uint32_t stamp, Waits& waits);

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

/// Waits of each instruction. `module`: of each, as its place in the chain; footprints likewise.
std::vector<Waits> find_waits(const std::vector<int>& module,
                              const std::vector<Footprint>& footprints);

}  // namespace tilewright::vta
