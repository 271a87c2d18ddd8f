// Simulated times of known networks beside those of the paper: `codegen_dpu_slow_test` prints them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/codegen/dpu/compile.h"
#include "tilewright/codegen/dpu/testing/networks.h"

namespace tilewright::dpu {
namespace {

struct Published {
  const char* network;
  double ms;  ///< of four images. source: the DPUV3INT8 paper, table I
};
const Published kPublished[] = {{"resnet18", 4.194},     {"resnet50_slim", 8.158},
                                {"resnet50", 9.605},     {"squeezenet1.1", 1.174},
                                {"inception_v1", 4.470}, {"inception_v3", 37.588},
                                {"yolov3_voc", 74.394},  {"vgg16", 37.499}};

double simulated_ms(const Network& network, const Config& config) {
  const Result<Compiled> compiled = compile(network, config);
  EXPECT_TRUE(compiled) << to_string(compiled.error());
  if (!compiled) return 0;
  uint64_t cycles = UINT64_MAX;
  for (const Attempt& attempt : compiled->attempts)
    if (attempt.why.empty()) cycles = std::min(cycles, attempt.cycles);
  return static_cast<double>(cycles) / config.clock_mhz / 1000;
}

TEST(DpuFiguresFull, PaperModeIsNearThePaperAndBestModeBetter) {
  const Config paper = *load_config("dpu-paper"), best = *load_config("dpu");
  double squares = 0;
  for (const Published& row : kPublished) {
    const Network network = known_network(row.network);
    const double as_paper = simulated_ms(network, paper), fast = simulated_ms(network, best);
    const double off = 100 * (as_paper / row.ms - 1);
    fmt::print(
        "{:14} published {:7.3f} ms, dpu-paper {:7.3f} ({:+.1f} %), dpu {:7.3f} ({:+.1f} %)\n",
        row.network, row.ms, as_paper, off, fast, 100 * (fast / row.ms - 1));
    EXPECT_LT(std::abs(off), 5) << row.network;
    EXPECT_LT(fast, row.ms) << row.network;
    squares += off * off;
  }
  const double rms = std::sqrt(squares / static_cast<double>(std::size(kPublished)));
  fmt::print("rms {:.2f} %\n", rms);
  EXPECT_LT(rms, 3);
}

// Pools beside the convolutions of other branches, and weights of a branch beside another one:
// 4.470 - 3.463 ms in the paper.
TEST(DpuFigures, ParallelBranches) {
  Config paper = *load_config("dpu-paper");
  const double serial = simulated_ms(known_network("inception_v1"), paper);
  paper.compiler.parallel_branches = true;
  const double parallel = simulated_ms(known_network("inception_v1"), paper);
  fmt::print("inception_v1, branches in parallel: published 3.463 ms, dpu-paper {:.3f} ms\n",
             parallel);
  EXPECT_NEAR(serial - parallel, 1.0, 0.2);
  EXPECT_NEAR(parallel, 3.463, 0.05 * 3.463);
}

// The paper's toy: 0.130 ms as one convolution on zeros in between, 0.086 ms as four.
TEST(DpuFigures, TransposedConvolutionAsFourIsFaster) {
  NetBuilder net;
  const ValueId x = net.input(16, 48, 90);
  Window w = square(4, 2, 1);
  const Network network = net.finish({net.deconv(x, 16, w)});
  Config config = *load_config("dpu-paper");
  const double four = simulated_ms(network, config);
  config.compiler.phase_deconvolution = false;
  const double classic = simulated_ms(network, config);
  fmt::print("transposed convolution: {:.3f} ms as four, {:.3f} ms with zeros\n", four, classic);
  EXPECT_NEAR(four, 0.086, 0.05 * 0.086);
  EXPECT_LT(four, classic);
}

}  // namespace
}  // namespace tilewright::dpu
