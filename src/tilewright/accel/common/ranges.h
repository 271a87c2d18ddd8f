// Ranges of addresses.
#pragma once

#include <cstdint>

namespace tilewright::accel {

/// [begin, end).
struct Range {
  uint64_t begin = 0, end = 0;
};

inline bool overlap(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace tilewright::accel
