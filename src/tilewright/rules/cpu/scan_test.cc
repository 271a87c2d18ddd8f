#include "tilewright/rules/cpu/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::rules {
namespace {

TEST(Scans, ThreadsShareOutGroupsOfAStep) {
  // The loop over groups holds the sum as well as the state it is named after.
  const Func func =
      *parse_func(R"(func f(x: f32[9,512], const w: f32[4,512,128], out h: f32[10,512]) {
  for s in 9, h.group in 4 {
    alloc sums: f32[128]
    for a in 128 {
      block sums.init(t: scan 9 = s, g: space 4 = h.group, j: space 128 = a) {
        sums[j] = x[t, g * 128 + j]
      }
    }
    for k in 512, b in 128 {
      block sums(t: scan 9 = s, g: space 4 = h.group, r: reduce 512 = k, j: space 128 = b) {
        sums[j] += h[t, r] * w[g, r, j]
      }
    }
    for h.j in 128 {
      block h(t: scan 9 = s, g: space 4 = h.group, j: space 128 = h.j) {
        h[t + 1, g * 128 + j] = tanh(sums[j])
      }
    }
  }
})");
  hw::CpuTarget target;
  target.vector_bytes = 64;
  EXPECT_THAT(schedule::print(default_trace(func, target, 2)),
              testing::HasSubstr("parallel(loop=h.group)"));
}

}  // namespace
}  // namespace tilewright::rules
