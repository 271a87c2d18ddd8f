#include "tilewright/accel/vta/sim/testing/random_programs.h"

namespace tilewright::vta {
namespace {

TEST(RandomProgramsTest, SimulatorsAgreeOnFiftyConfigurations) {
  testing::check_random_programs(1, 50, 4);
}

}  // namespace
}  // namespace tilewright::vta
