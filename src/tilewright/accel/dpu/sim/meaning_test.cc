#include <gtest/gtest.h>

#include "tilewright/accel/dpu/sim/testing/random_meaning.h"

namespace tilewright::dpu {
namespace {

TEST(MeaningSlow, SimulatorComputesWhatTheLoopProgramsSay) {
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) testing::MeaningCase(seed).run();
}

}  // namespace
}  // namespace tilewright::dpu
