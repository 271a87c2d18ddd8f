#include "tilewright/codegen/dpu/compile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/dpu/check.h"
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

// Every way is tested, not only the one that wins.
TEST(DpuCompile, RandomNetworksComputeWhatTheyMean) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Rng rng(seed);
    const Network network = random_network(rng, 8, 20);
    ASSERT_TRUE(check(network)) << to_string(check(network).error());
    const Config config = random_config(rng, 1);
    CompileOptions options;
    options.only = static_cast<int>(rng.below(16));
    ASSERT_EQ(problem_of(network, config, rng, options), "")
        << "seed " << seed << "\n"
        << describe(network) << to_toml(config);
  }
}

TEST(DpuCompile, TinyMemoriesChangeNoResult) {
  int refused = 0;
  const int count = 120;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Rng rng(seed + 10'000);
    const Network network = random_network(rng, 6, 32);
    const Config config = random_config(rng, 128);
    CompileOptions options;
    options.only = static_cast<int>(rng.below(16));
    const std::string problem = problem_of(network, config, rng, options);
    if (problem.find("fits no split") != std::string::npos ||
        problem.find("fit no PM") != std::string::npos) {
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
TEST(DpuCompile, ChainsOfAdditionsInTinyMemories) {
  Rng rng(100703);
  const Network network = random_network(rng, 6, 32);
  const Config config = random_config(rng, 128);
  for (CompileOptions options; options.only < 10; ++options.only)
    ASSERT_EQ(problem_of(network, config, rng, options), "") << options.only;
}

TEST(DpuCompile, SplitsGiveTheSameBytes) {
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
  EXPECT_THAT(to_string(compiled.error()), HasSubstr("1153 words for 16 output channels, 1000"));
}

TEST(DpuCompile, StridedLayersAvoidConflicts) {
  NetBuilder net;
  ValueId x = net.conv(net.input(64, 56, 56), 64, square(1));
  Network network = net.finish({net.conv(x, 128, square(3, 2, 1))});
  Rng rng(5);
  fill(network, rng);
  Config config = machine();
  const Result<Compiled> fast = compile(network, config);
  ASSERT_TRUE(fast);
  config.compiler.reorder_stride = false;
  const Result<Compiled> plain = compile(network, config);
  ASSERT_TRUE(plain);
  const auto cycles = [&](const Compiled& c) {
    return simulate_time(config, c.program.runs[0].insns)->cycles;
  };
  EXPECT_LT(cycles(*fast), cycles(*plain) * 85 / 100);
  EXPECT_EQ(problem_of(network, machine(), rng), "");
}

}  // namespace
}  // namespace tilewright::dpu
