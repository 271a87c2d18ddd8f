// Bounds on what a package may ask for: sums and products of them stay inside int64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright::runtime {

inline constexpr int64_t kMaxBytes = int64_t{1} << 46;  ///< of a value, the arena, the weights
inline constexpr size_t kMaxRank = 64;                  ///< DLPack allows any, nobody needs more

}  // namespace tilewright::runtime
