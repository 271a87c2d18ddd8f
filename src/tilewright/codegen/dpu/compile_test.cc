#include "tilewright/codegen/dpu/compile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/sim/fsim.h"
#include "tilewright/accel/dpu/sim/tsim.h"
#include "tilewright/codegen/dpu/testing/networks.h"
#include "tilewright/codegen/dpu/testing/random.h"

namespace tilewright::dpu {
namespace {

using testing::HasSubstr;

/// Empty, or what is wrong with the program of `network`: its tokens, its memory, its results.
std::string problem_of(const Network& network, const Config& config, Rng& rng,
                       const CompileOptions& options = {}) {
  const Result<Compiled> compiled = compile(network, config, options);
  if (!compiled) return to_string(compiled.error());
  const Status valid = validate(compiled->program);
  if (!valid) return to_string(valid.error());
  const std::vector<Finding> findings = check_program(compiled->program, 3);
  for (const Finding& finding : findings)
    return std::string(name(finding.rule)) + ": " + finding.text;
  const Images images = random_images(network, config, rng);
  const Result<Images> results = run_program(compiled->program, images);
  if (!results) return to_string(results.error());
  return difference(network, images, *results);
}

/// One of all ways to compile it, not only the one that wins.
CompileOptions one_way(const Network& network, const Config& config, Rng& rng) {
  CompileOptions options;
  if (const Result<Compiled> compiled = compile(network, config))
    options.only = static_cast<int>(rng.below(static_cast<int64_t>(compiled->attempts.size())));
  return options;
}

Config machine(bool address_tokens = true) {
  Config config;
  config.compiler.address_tokens = address_tokens;
  config.compiler.layer_barrier = !address_tokens;
  config.compiler.prefetch = address_tokens;
  return config;
}

size_t count_ops(const Program& program, std::string_view op) {
  size_t count = 0;
  for (const Insn& insn : program.runs[0].insns)
    count += disassemble(insn).substr(0, op.size() + 1) == std::string(op) + " ";
  return count;
}

TEST(DpuCompileSlow, RandomNetworksComputeWhatTheyMean) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Rng rng(seed);
    const Network network = random_network(rng, 8, 20);
    ASSERT_TRUE(check(network)) << to_string(check(network).error());
    const Config config = random_config(rng, 1);
    const CompileOptions options = one_way(network, config, rng);
    ASSERT_EQ(problem_of(network, config, rng, options), "")
        << "seed " << seed << "\n"
        << describe(network) << to_toml(config);
  }
}

TEST(DpuCompileSlow, TinyMemoriesChangeNoResult) {
  int refused = 0;
  const int count = 120;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Rng rng(seed + 10'000);
    const Network network = random_network(rng, 6, 32);
    const Config config = random_config(rng, 128);
    const CompileOptions options = one_way(network, config, rng);
    const std::string problem = problem_of(network, config, rng, options);
    if (problem.find("fits no split") != std::string::npos ||
        problem.find("do not fit PM") != std::string::npos) {
      ++refused;
      continue;
    }
    ASSERT_EQ(problem, "") << "seed " << seed << "\n" << describe(network) << to_toml(config);
  }
  EXPECT_LT(refused, count / 10);
}

TEST(DpuCompile, DurationsChangeNoResult) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed + 20'000);
    const Network network = random_network(rng, 6, 20);
    const Config config = random_config(rng, 16);
    const Result<Compiled> compiled = compile(network, config);
    if (!compiled) continue;
    const Images images = random_images(network, config, rng);
    const auto device = make_tsim(config, compiled->program.end(), Jitter{seed, 3000});
    const Result<Images> results = run_program(*device, compiled->program, images);
    ASSERT_TRUE(results) << to_string(results.error());
    ASSERT_EQ(difference(network, images, *results), "") << "seed " << seed;
  }
}

// The first block of VGG: input, conv, conv + pool.
TEST(DpuCompile, FirstBlockOfVgg) {
  NetBuilder net;
  ValueId x = net.conv(net.input(3, 224, 224), 64, square(3, 1, 1));
  x = net.max_pool(net.conv(x, 64, square(3, 1, 1)), square(2, 2));
  const Network network = net.finish({x});
  const Result<Compiled> compiled = compile(network, machine());
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  const Program& program = compiled->program;
  ASSERT_EQ(program.runs[0].spans.size(), 2u);
  EXPECT_EQ(program.runs[0].spans[0].name, "conv1");
  EXPECT_EQ(program.runs[0].spans[1].name, "conv2+pool3");
  ASSERT_EQ(compiled->layers.size(), 3u);
  EXPECT_EQ(compiled->layers[0].home, "DDR");
  EXPECT_EQ(compiled->layers[1].home, "window");
  EXPECT_EQ(compiled->layers[1].with, "pool3");
  EXPECT_EQ(count_ops(program, "CONV"), 2u * 28);
  EXPECT_EQ(count_ops(program, "POOL"), 56u);
  // Rows of the image and of the map between; one LOAD of weights for each convolution.
  EXPECT_EQ(count_ops(program, "SAVE"), 224u + 112);
  EXPECT_EQ(count_ops(program, "LOAD"), 2u + 2 * 224);
  EXPECT_EQ(program.formats.size(), 1u);
  EXPECT_TRUE(check_program(program).empty());
}

uint64_t cycles_of(const Result<Compiled>& compiled) {
  return simulate_time(compiled->program.config, compiled->program.runs[0].insns)->cycles;
}

/// The number of the attempt whose name has `words`; -1: none.
int attempt_with(const Compiled& compiled, const std::string& words) {
  for (size_t i = 0; i < compiled.attempts.size(); ++i)
    if (compiled.attempts[i].what.find(words) != std::string::npos) return static_cast<int>(i);
  return -1;
}

// Four POOLs make the rows of a CONV; the map between them needs a window only.
TEST(DpuCompileSlow, ConvolutionsFollowPools) {
  for (const int stride : {1, 2}) {
    NetBuilder net;
    const ValueId x = net.input(32, 41, 37);
    const ValueId y = net.conv(net.max_pool(x, square(3, stride, 1)), 48, square(3, stride, 1));
    Network network = net.finish({y, net.conv(x, 16, square(1))});
    Rng rng(6);
    fill(network, rng);
    const Config config = machine();
    Result<Compiled> compiled = compile(network, config);
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    CompileOptions options;
    options.only = attempt_with(*compiled, "pools with the convolutions behind them");
    ASSERT_GE(options.only, 0);
    compiled = compile(network, config, options);
    ASSERT_TRUE(compiled);
    EXPECT_EQ(compiled->program.runs[0].spans[0].name, "pool1+conv2");
    EXPECT_EQ(compiled->layers[0].home, "window");
    EXPECT_EQ(problem_of(network, config, rng, options), "");
  }
}

TEST(DpuCompile, PoolsThatOthersReadStayAlone) {
  NetBuilder net;
  const ValueId x = net.max_pool(net.input(16, 16, 16), square(2, 2));
  const Network network =
      net.finish({net.conv(x, 16, square(1)), net.conv(x, 16, square(3, 1, 1))});
  const Result<Compiled> compiled = compile(network, machine());
  ASSERT_TRUE(compiled);
  EXPECT_EQ(attempt_with(*compiled, "behind them"), -1);
}

// As in the paper: only pools of branches, which `branches` is about.
TEST(DpuCompile, PoolsStayAloneUnderTheRulesOfThePaper) {
  NetBuilder net;
  const ValueId x = net.input(16, 16, 16);
  const Network network = net.finish({net.conv(net.max_pool(x, square(2, 2)), 16, square(1))});
  Config config = machine(false);
  config.compiler.parallel_branches = false;
  Result<Compiled> compiled = compile(network, config);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(attempt_with(*compiled, "behind them"), -1);
  config.compiler.parallel_branches = true;
  compiled = compile(network, config);
  ASSERT_TRUE(compiled);
  EXPECT_GE(attempt_with(*compiled, "behind them"), 0);
}

// Zeros, copies and convolution go over the rows together: the longest of them is all it takes.
TEST(DpuCompileSlow, TransposedConvolutionsOverZerosAreOneLayer) {
  NetBuilder net;
  Network network = net.finish({net.deconv(net.input(16, 48, 90), 16, square(4, 2, 1))});
  Rng rng(8);
  fill(network, rng);
  for (const bool addresses : {true, false}) {
    Config config = machine(addresses);
    config.compiler.phase_deconvolution = false;
    const Result<Compiled> together = compile(network, config);
    ASSERT_TRUE(together) << to_string(together.error());
    EXPECT_EQ(together->program.runs[0].spans.size(), 1u);
    EXPECT_EQ(problem_of(network, config, rng), "");
    config.compiler.fusion = false;
    const Result<Compiled> apart = compile(network, config);
    ASSERT_TRUE(apart);
    EXPECT_GE(apart->program.runs[0].spans.size(), 3u);
    EXPECT_LT(cycles_of(together), cycles_of(apart) * 80 / 100);
  }
}

TEST(DpuCompile, ConcatsAreMadeInPlace) {
  NetBuilder net;
  const ValueId x = net.input(16, 9, 9);
  const ValueId a = net.conv(x, 24, square(1)), b = net.conv(x, 40, square(3, 1, 1));
  const ValueId ab = net.concat({a, b});
  const ValueId all = net.concat({ab, net.conv(ab, 16, square(1))});
  Network network = net.finish({net.conv(all, 20, square(3, 1, 1))});
  Rng rng(1);
  fill(network, rng);
  const Result<Compiled> compiled = compile(network, machine());
  ASSERT_TRUE(compiled);
  EXPECT_EQ(count_ops(compiled->program, "POOL"), 0u);
  EXPECT_EQ(problem_of(network, machine(), rng), "");
}

// Groups, rows and columns of a map are read where they are; lanes within a group too.
TEST(DpuCompile, SlicesAreViews) {
  NetBuilder net;
  const ValueId x = net.conv(net.input(16, 12, 11), 64, square(1));
  const ValueId a = net.slice(x, {16, 0, 0}, {"", 32, 12, 11});
  const ValueId b = net.slice(x, {0, 3, 2}, {"", 64, 8, 7});
  const ValueId c = net.slice(x, {7, 0, 0}, {"", 20, 12, 11});
  Network network = net.finish({net.conv(a, 16, square(3, 1, 1)), net.conv(b, 16, square(3, 1, 1)),
                                net.conv(c, 16, square(3, 1, 1))});
  Rng rng(2);
  fill(network, rng);
  const Result<Compiled> compiled = compile(network, machine());
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  EXPECT_EQ(count_ops(compiled->program, "POOL"), 0u);
  EXPECT_EQ(count_ops(compiled->program, "CONV"), 2u + 2 + 1 + 2);
  EXPECT_EQ(problem_of(network, machine(), rng), "");
  EXPECT_EQ(problem_of(network, machine(false), rng), "");
}

// The other channels of the last group must not be in the result: its lanes behind are 0.
TEST(DpuCompile, ResultsOfSlicesAreAlone) {
  NetBuilder net;
  const ValueId x = net.conv(net.input(16, 6, 5), 40, square(1), kNone);
  Network network =
      net.finish({net.slice(x, {16, 1, 0}, {"", 10, 4, 5}), net.conv(x, 3, square(1))});
  Rng rng(4);
  fill(network, rng);
  const Result<Compiled> compiled = compile(network, machine());
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  EXPECT_EQ(problem_of(network, machine(), rng), "");
  const auto device = make_fsim(compiled->program.config, compiled->program.end());
  ASSERT_TRUE(run_program(*device, compiled->program, random_images(network, machine(), rng)));
  const auto& output = compiled->program.outputs[0];
  std::string bytes(output.bytes, '\0');
  ASSERT_TRUE(device->read(output.address, bytes.data(), bytes.size()));
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_TRUE(i % 16 < 10 || bytes[i] == 0) << i;
}

TEST(DpuCompile, AdditionsOverwriteWhatDies) {
  NetBuilder net;
  const ValueId x = net.conv(net.input(16, 16, 16), 32, square(1));
  const ValueId sum = net.add(net.conv(x, 32, square(3, 1, 1)), x);
  Network network = net.finish({net.conv(sum, 16, square(1))});
  const Result<Compiled> compiled = compile(network, machine());
  ASSERT_TRUE(compiled);
  int in_place = 0, all = 0;
  for (const Insn& insn : compiled->program.runs[0].insns)
    if (const auto* elew = std::get_if<Elew>(&insn.op)) {
      ++all;
      in_place += elew->bank_id_out == elew->bank_id_a && elew->bank_addr_out == elew->bank_addr_a;
    }
  EXPECT_EQ(all, 8);
  EXPECT_EQ(in_place, 8);
}

// The convolution still needs rows of x that the addition would overwrite.
TEST(DpuCompile, AdditionsSpareWhatIsStillRead) {
  NetBuilder net;
  const ValueId x = net.conv(net.input(16, 24, 24), 16, square(1));
  Network network =
      net.finish({net.conv(net.add(x, net.conv(x, 16, square(3, 1, 1))), 16, square(1))});
  Rng rng(11);
  fill(network, rng);
  EXPECT_EQ(problem_of(network, machine(), rng), "");
  EXPECT_EQ(problem_of(network, machine(false), rng), "");
}

// A map between two fused layers must not take the way through DDR.
TEST(DpuCompileSlow, ChainsOfAdditionsInTinyMemories) {
  Rng rng(100703);
  const Network network = random_network(rng, 6, 32, false);
  const Config config = random_config(rng, 128);
  for (CompileOptions options; options.only < 10; ++options.only)
    ASSERT_EQ(problem_of(network, config, rng, options), "") << options.only;
}

TEST(DpuCompileSlow, SplitsGiveTheSameBytes) {
  NetBuilder net;
  Network network = net.finish({net.conv(net.input(40, 30, 50), 70, square(3, 1, 1))});
  Rng rng(7);
  fill(network, rng);
  const Config whole = machine();
  Config tiny = whole;
  tiny.fm_depth = {96, 80, 64};
  tiny.pm_depth = 64;
  const Result<Compiled> a = compile(network, whole), b = compile(network, tiny);
  ASSERT_TRUE(a);
  ASSERT_TRUE(b) << to_string(b.error());
  EXPECT_THAT(b->layers[0].how, HasSubstr("strips of"));
  EXPECT_THAT(b->layers[0].how, HasSubstr("5 passes over channels"));
  const Images images = random_images(network, whole, rng);
  const Result<Images> of_a = run_program(a->program, images);
  const Result<Images> of_b = run_program(b->program, images);
  ASSERT_TRUE(of_a && of_b);
  EXPECT_EQ(*of_a, *of_b);
  EXPECT_EQ(difference(network, images, *of_a), "");
}

// 4 x 9 x 4 words and one of biases are 145.
TEST(DpuCompile, WeightsThatJustMissPmAreTiled) {
  NetBuilder net;
  Network network = net.finish({net.conv(net.input(64, 8, 8), 64, square(3, 1, 1))});
  Rng rng(3);
  fill(network, rng);
  Config config = machine();
  config.compiler.prefetch = false;
  config.pm_depth = 145;
  Result<Compiled> compiled = compile(network, config);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(count_ops(compiled->program, "CONV"), 1u);
  config.pm_depth = 144;
  compiled = compile(network, config);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(count_ops(compiled->program, "CONV"), 4u);
  EXPECT_EQ(problem_of(network, config, rng), "");
}

TEST(DpuCompile, SaysWhatDoesNotFit) {
  NetBuilder net;
  Network network = net.finish({net.conv(net.input(2048, 9, 9), 16, square(3))});
  Config config = machine();
  config.fm_depth = {64, 64, 64};
  Result<Compiled> compiled = compile(network, config);
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().kind, ErrorKind::Capacity);
  EXPECT_THAT(to_string(compiled.error()), HasSubstr("data0"));
  EXPECT_THAT(to_string(compiled.error()), HasSubstr("bytes"));
  config = machine();
  config.pm_depth = 1000;
  compiled = compile(network, config);
  ASSERT_FALSE(compiled);
  EXPECT_THAT(
      to_string(compiled.error()),
      HasSubstr(
          "16 output channels need 1153 words of 256 bytes (288 KiB), PM has 1000 (250 KiB)"));
}

// 56 rows fold to 28. 35 do to 18, the last of which has a row of zeros that padding or no tap
// meets.
TEST(DpuCompile, StridedLayersAvoidConflicts) {
  Rng rng(5);
  for (const auto& [size, pad] : {std::pair(56, 1), std::pair(35, 0), std::pair(35, 1)}) {
    const auto strided = [&](int64_t width, int64_t channels) {
      NetBuilder net;
      const ValueId x = net.conv(net.input(64, size, width), 64, square(1));
      Network network = net.finish({net.conv(x, channels, square(3, 2, pad))});
      fill(network, rng);
      return network;
    };
    Config config = machine();
    const Result<Compiled> fast = compile(strided(56, 128), config);
    ASSERT_TRUE(fast);
    EXPECT_THAT(fast->layers.back().how, HasSubstr("rows folded 2 to one"));
    config.compiler.reorder_stride = false;
    const Result<Compiled> plain = compile(strided(56, 128), config);
    ASSERT_TRUE(plain);
    EXPECT_LT(cycles_of(fast), cycles_of(plain) * 90 / 100) << size;
    CompileOptions folded;
    folded.only = attempt_with(*fast, "strided layers reordered");
    EXPECT_EQ(problem_of(strided(9, 16), machine(), rng, folded), "") << size;
  }
}

TEST(DpuCompileSlow, ReorderedLayersComputeWhatTheyMean) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed + 30'000);
    NetBuilder net;
    const int64_t height = rng.between(5, 20), width = rng.between(5, 20);
    const ValueId x = net.conv(net.input(16, height, width), rng.between(1, 40), square(1));
    const int kernel = static_cast<int>(rng.between(2, 5));
    Window w = square(kernel, rng.chance(0.7) ? 2 : 4);
    for (int* pad : {&w.pad_top, &w.pad_left, &w.pad_bottom, &w.pad_right})
      *pad = static_cast<int>(rng.below(kernel));
    Network network =
        net.finish({net.conv(x, rng.between(1, 40), w), net.conv(x, 16, square(1, 2))});
    fill(network, rng);
    Config config = random_config(rng, 1);
    config.compiler.reorder_stride = true;
    const Result<Compiled> compiled = compile(network, config);
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    CompileOptions options;
    options.only = attempt_with(*compiled, "strided layers reordered");
    ASSERT_GE(options.only, 0);
    ASSERT_EQ(problem_of(network, config, rng, options), "")
        << "seed " << seed << "\n"
        << describe(network) << to_toml(config);
  }
}

// Folding the first layer pays. For the second MISC would copy for longer than CONV saves.
TEST(DpuCompile, EachStridedLayerIsDecidedByItself) {
  NetBuilder net;
  ValueId x = net.conv(net.input(64, 56, 56), 64, square(1));
  x = net.conv(x, 512, square(3, 2, 1));
  const Network network = net.finish({net.conv(x, 16, square(3, 2, 1))});
  const Result<Compiled> best = compile(network, machine());
  ASSERT_TRUE(best);
  ASSERT_EQ(best->layers.back().name, "conv3");
  EXPECT_THAT(best->layers.back().how, testing::Not(HasSubstr("folded")));
  const auto conv2 = std::find_if(best->layers.begin(), best->layers.end(), [](const auto& layer) {
    return layer.name == "conv2" && layer.how.find("folded") != std::string::npos;
  });
  EXPECT_NE(conv2, best->layers.end());
  EXPECT_GE(attempt_with(*best, "reordered but conv3"), 0);
  const uint64_t least = cycles_of(best);
  for (const Attempt& attempt : best->attempts) EXPECT_GE(attempt.cycles, least) << attempt.what;
}

}  // namespace
}  // namespace tilewright::dpu
