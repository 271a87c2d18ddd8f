// What the unit tests do on a few random programs, on many.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tilewright::dpu
