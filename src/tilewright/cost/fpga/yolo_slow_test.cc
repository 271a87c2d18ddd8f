// The convolutions of YOLO-v1 on a VU9P, f32: no layer slower than the best designs that were known
// before (found by a coarse search, by this model's formulas with whole tiles).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tilewright/cost/fpga/search.h"
#include "tilewright/cost/fpga/testing/layers.h"
#include "tilewright/hw/fpga_device_file.h"

namespace tilewright::cost {
namespace {

// Thousands of cycles: the uniform design <64, 16> with overlap and without, and the best known.
constexpr double kUniform[] = {2472.8, 1362.7, 79.0,  908.0, 206.0,  3621.1, 103.6, 908.0,
                               205.0,  3620.8, 104.1, 907.8, 1812.2, 456.8,  456.8};
constexpr double kBest[] = {471.9, 1362.4, 79.0,  908.0, 206.0,  3621.1, 103.6, 908.0,
                            205.0, 3545.6, 104.1, 891.0, 1777.0, 450.5,  448.2};

TEST(FpgaYolo, Anchors) {
  const std::vector<SpatialLayer> layers = yolo_layers();
  double share = 0, gain = 0, least = 1;
  for (size_t i = 0; i < layers.size(); ++i) {
    const FpgaModel model = *FpgaModel::create(*hw::load_fpga_device("vu9p"), layers[i]);
    const auto best = best_fpga_design(model);
    const auto uniform = best_fpga_design(model, {.sizes = std::array<int64_t, 3>{64, 16, 1}});
    const auto alone =
        best_fpga_design(model, {.sizes = std::array<int64_t, 3>{64, 16, 1}, .overlap = false});
    ASSERT_TRUE(best && uniform && alone) << layers[i].name;
    const double bound = model.macs() / 1052, mine = best->time.cycles;
    std::printf("%-4s bound %8.1f  uniform %8.1f  alone %8.1f  best %8.1f (%6.1f)  %.3f  %s  %ld\n",
                layers[i].name.c_str(), bound / 1e3, uniform->time.cycles / 1e3,
                alone->time.cycles / 1e3, mine / 1e3, kBest[i], bound / mine,
                to_string(best->design).c_str(), static_cast<long>(best->looked_at));
    EXPECT_LE(mine / 1e3, kBest[i] * 1.0005) << layers[i].name;
    // The uniform design's table counts whole tiles: ours are cut at the edges.
    EXPECT_LE(uniform->time.cycles / 1e3, kUniform[i] * 1.0005) << layers[i].name;
    EXPECT_GE(uniform->time.cycles / 1e3, kUniform[i] * 0.97) << layers[i].name;
    share += std::log(bound / mine);
    gain += std::log(alone->time.cycles / mine);
    least = std::min(least, bound / mine);
  }
  std::printf("share %.4f, least %.4f, gain %.3f\n", std::exp(share / 15), least,
              std::exp(gain / 15));
  EXPECT_GE(std::exp(share / 15), 0.965);
  EXPECT_GE(least, 0.94);
  EXPECT_GE(std::exp(gain / 15), 1.42);
}

}  // namespace
}  // namespace tilewright::cost
