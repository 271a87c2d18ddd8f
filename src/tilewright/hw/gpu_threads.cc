#include "tilewright/hw/gpu_threads.h"

namespace tilewright::hw {

bool has_patches(const std::array<int64_t, 3>& block) {
  return block[0] == kPatchedThreads && block[1] % kPatchHeight == 0;
}

std::array<int64_t, 3> thread_place(int64_t id, const std::array<int64_t, 3>& block) {
  const int64_t plane = id % (block[0] * block[1]), z = id / (block[0] * block[1]);
  if (!has_patches(block)) return {plane % block[0], plane / block[0], z};
  const int64_t warp = plane / 32, lane = plane % 32, across = block[0] / kPatchWidth;
  return {warp % across * kPatchWidth + lane % kPatchWidth,
          warp / across * kPatchHeight + lane / kPatchWidth, z};
}

}  // namespace tilewright::hw
