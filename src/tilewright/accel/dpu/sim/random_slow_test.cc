// What the unit tests do on a few random programs, on many.
#include <gtest/gtest.h>

#include <cstdio>

#include "tilewright/accel/dpu/sim/testing/random_data.h"
#include "tilewright/accel/dpu/sim/testing/random_times.h"

namespace tilewright::dpu {
namespace {

TEST(RandomPrograms, TimesAreThoseOfAMachineThatStepsCycleByCycle) {
  for (uint64_t seed = 0; seed < 400; ++seed) testing::compare_times(seed);
}

TEST(RandomPrograms, DataIsThatOfTheFormulas) {
  for (uint64_t seed = 0; seed < 20; ++seed) testing::compare_with_formulas(seed);
}

TEST(RandomPrograms, DataDoesNotDependOnTime) {
  for (uint64_t seed = 0; seed < 200; ++seed) testing::compare_under_jitter(seed);
}

TEST(RandomProgramsFull, DataIsThatOfTheFormulas) {
  for (uint64_t seed = 20; seed < 60; ++seed) testing::compare_with_formulas(seed);
}

TEST(RandomProgramsFull, DataDoesNotDependOnTime) {
  for (uint64_t seed = 0; seed < 10'000 && !HasFailure(); ++seed) {
    testing::compare_under_jitter(seed);
    if (seed % 500 != 499) continue;
    std::printf("%d programs\n", static_cast<int>(seed) + 1);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace tilewright::dpu
