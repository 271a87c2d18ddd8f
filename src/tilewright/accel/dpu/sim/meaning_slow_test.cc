#include <gtest/gtest.h>

#include "tilewright/accel/dpu/sim/testing/random_meaning.h"

namespace tilewright::dpu {
namespace {

TEST(Meaning, SimulatorComputesWhatTheLoopProgramsSayOften) {
  for (uint64_t seed = 1000; seed < 4'000 && !HasFailure(); ++seed)
    testing::MeaningCase(seed).run();
}

}  // namespace
}  // namespace tilewright::dpu
