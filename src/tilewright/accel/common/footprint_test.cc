#include "tilewright/accel/common/footprint.h"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/base/rng.h"

namespace tilewright::accel {
namespace {

TEST(Conflict, OfRowsThatMeetInOneMemory) {
  const Access a = one_row(2, 10, 20, true);
  EXPECT_TRUE(conflict(a, one_row(2, 19, 25, false)));
  EXPECT_FALSE(conflict(a, one_row(2, 20, 25, true)));
  EXPECT_FALSE(conflict(a, one_row(1, 10, 20, true)));
  EXPECT_FALSE(conflict(one_row(2, 10, 20, false), one_row(2, 10, 20, false)));
}

std::set<uint64_t> places(const Access& access) {
  std::set<uint64_t> all;
  for (uint32_t r = 0; r < access.rows; ++r)
    for (uint64_t b = 0; b < access.width; ++b) all.insert(access.address + r * access.pitch + b);
  return all;
}

TEST(Conflict, IsExact) {
  Rng rng(1);
  int conflicts = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto rows = [&] {
      return Access{0,
                    static_cast<uint64_t>(rng.below(60)),
                    static_cast<uint64_t>(rng.below(12)),
                    static_cast<uint64_t>(rng.below(6)),
                    static_cast<uint32_t>(rng.below(6)),
                    rng.chance(0.5)};
    };
    const Access a = rows(), b = rows();
    bool common = false;
    const std::set<uint64_t> other = places(b);
    for (const uint64_t place : places(a)) common = common || other.count(place) != 0;
    EXPECT_EQ(conflict(a, b), common && (a.write || b.write));
    conflicts += conflict(a, b);
  }
  EXPECT_GT(conflicts, 1000);
}

}  // namespace
}  // namespace tilewright::accel
