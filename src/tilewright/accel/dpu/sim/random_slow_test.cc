// What the unit tests do on a few random programs, on many.
#include <gtest/gtest.h>

#include <cstdio>

#include "tilewright/accel/dpu/sim/testing/random_data.h"
#include "tilewright/accel/dpu/sim/testing/random_times.h"

namespace tilewright::dpu {
namespace {

TEST(RandomPrograms, TimesAreThoseOfAMachineThatStepsCycleByCycle) {
  for (uint64_t seed = 0; seed < 1000; ++seed) testing::compare_times(seed);
}

TEST(RandomPrograms, DataIsThatOfTheFormulas) {
  for (uint64_t seed = 0; seed < 60; ++seed) testing::compare_with_formulas(seed);
}

TEST(RandomPrograms, DataDoesNotDependOnTime) {
  for (uint64_t seed = 0; seed < 400; ++seed) testing::compare_under_jitter(seed);
}

/// Every program there is time for: the test accel_dpu_ten_thousand_programs runs it, with the
/// label `full`.
TEST(RandomPrograms, DISABLED_TenThousand) {
  for (uint64_t seed = 0; seed < 10'000 && !HasFailure(); ++seed) {
    testing::compare_under_jitter(seed);
    if (seed % 500 != 499) continue;
    std::printf("%d programs\n", static_cast<int>(seed) + 1);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace tilewright::dpu
