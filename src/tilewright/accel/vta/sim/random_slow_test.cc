#include "tilewright/accel/vta/sim/testing/random_programs.h"

namespace tilewright::vta {
namespace {

TEST(RandomProgramsTest, SimulatorsAgreeOnTenThousandPrograms) {
  testing::check_random_programs(2, 500, 20);
}

}  // namespace
}  // namespace tilewright::vta
