// Block RAMs of the families xc7 and xcup.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "tilewright/base/integers.h"

namespace tilewright::fpga {

/// Block RAMs of 18 Kbit for so many words of `bits`: as few as the shapes of one allow.
inline int64_t bram18_of(int64_t words, int64_t bits) {
  constexpr std::pair<int64_t, int64_t> kShapes[] = {{36, 512}, {18, 1024}, {9, 2048},
                                                     {4, 4096}, {2, 8192},  {1, 16384}};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& [width, depth] : kShapes)
    least = std::min(least, ceil_div(bits, width) * ceil_div(words, depth));
  return least;
}

}  // namespace tilewright::fpga
