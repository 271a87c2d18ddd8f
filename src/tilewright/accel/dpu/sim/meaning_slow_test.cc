#include <gtest/gtest.h>

#include "tilewright/accel/dpu/sim/testing/random_meaning.h"

namespace tilewright::dpu {
namespace {

TEST(Meaning, SimulatorComputesWhatTheLoopProgramsSayOften) {
  for (uint64_t seed = 1000; seed < 2'000 && !HasFailure(); ++seed)
    testing::MeaningCase(seed).run();
}

TEST(MeaningFull, SimulatorComputesWhatTheLoopProgramsSay) {
  for (uint64_t seed = 2000; seed < 10'000 && !HasFailure(); ++seed)
    testing::MeaningCase(seed).run();
}

}  // namespace
}  // namespace tilewright::dpu
