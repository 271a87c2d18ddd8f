// What the unit tests do on a few random programs, on many.
#include "tilewright/accel/spatial/sim/testing/random_data.h"

namespace tilewright::spatial {
namespace {

TEST(SpatialRandomPrograms, DoWhatTheirTextSays) {
  for (uint64_t seed = 0; seed < 1000 && !HasFailure(); ++seed)
    testing::compare_with_text(seed, 40);
}

}  // namespace
}  // namespace tilewright::spatial
