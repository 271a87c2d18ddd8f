// Which threads of a block make a warp.
#pragma once

#include <array>
#include <cstdint>

namespace tilewright::hw {

/// Planes of 16 threads by a multiple of 4 are gone through by warps in patches of 8 by 4, not in
/// two rows of 16: a warp then reads less of what threads of a row or of a column share.
inline constexpr int64_t kPatchedThreads = 16, kPatchWidth = 8, kPatchHeight = 4;
bool has_patches(const std::array<int64_t, 3>& block);
/// The place of the `id`-th thread of a block, as warps count them: x, y, z.
std::array<int64_t, 3> thread_place(int64_t id, const std::array<int64_t, 3>& block);

}  // namespace tilewright::hw
