#include "tilewright/codegen/dpu/way.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/dpu/check.h"
#include "tilewright/codegen/dpu/candidates.h"
#include "tilewright/codegen/dpu/testing/networks.h"
#include "tilewright/codegen/dpu/testing/random.h"

namespace tilewright::dpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Any way for a network of so many nodes and roots; most decisions by rule.
Way random_way(Rng& rng, Form form, int nodes, int roots) {
  Way way;
  way.form = form;
  way.schedule = static_cast<Schedule>(rng.below(5));
  way.fuse = rng.chance(0.7);
  way.behind_pools = rng.chance(0.3);
  way.pieces = 1 << rng.below(4);
  way.homes = static_cast<Homes>(rng.below(3));
  for (int n = 0; n < nodes; ++n) {
    if (rng.chance(0.2)) way.later[n] = static_cast<int>(rng.below(6));
    if (rng.chance(0.2)) way.apart.insert(n);
    if (rng.chance(0.2)) way.pieces_of[n] = 1 << rng.below(4);
    if (rng.chance(0.2)) way.rows[n] = 1 << rng.below(4);
  }
  for (int r = 0; r < roots; ++r)
    if (rng.chance(0.3)) way.home[r] = static_cast<int>(rng.below(4));
  return way;
}

std::vector<std::string> layer_names(const Lowered& lowered, const std::vector<int>& order) {
  std::vector<std::string> names;
  for (const int n : order) names.push_back(lowered.nodes[static_cast<size_t>(n)].layer);
  return names;
}

TEST(DpuWay, TextsReadBack) {
  EXPECT_EQ(to_string(Way()), "default");
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    const Way way = random_way(rng, static_cast<Form>(rng.below(3)), 12, 9);
    const Result<Way> read = parse_way(to_string(way));
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(*read, way) << to_string(way);
  }
  const Result<Way> some = parse_way("schedule=depth-first later=12:2,15:1 apart=7 home=3:3");
  ASSERT_TRUE(some);
  EXPECT_EQ(some->schedule, Schedule::DepthFirst);
  EXPECT_EQ(some->later, (std::map<int, int>{{12, 2}, {15, 1}}));
}

TEST(DpuWay, SaysWhatItCannotRead) {
  for (const char* text :
       {"form=round", "later=3", "later=a:1", "apart=x", "pieces=-1", "what=1", "fuse", "home=1:"})
    EXPECT_FALSE(parse_way(text)) << text;
  EXPECT_THAT(to_string(parse_way("what=1").error()), HasSubstr("'what'"));
}

// Every decision alone and with others, on any hardware: results are those of the network.
TEST(DpuWaySlow, RandomWaysComputeWhatTheyMean) {
  int made = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Rng rng(seed + 40'000);
    const Network network = random_network(rng, 8, 24);
    const Config config = random_config(rng, seed % 2 == 0 ? 1 : 16);
    const Result<Candidates> candidates = candidates_of(network, config);
    if (!candidates) continue;
    Form form = static_cast<Form>(rng.below(3));
    if (candidates->lowered(form) == nullptr) form = Form::Plain;
    const Lowered& lowered = *candidates->lowered(form);
    const Way way = random_way(rng, form, static_cast<int>(lowered.nodes.size()),
                               static_cast<int>(lowered.roots.size()));
    const Result<Candidate> candidate = candidates->make(way);
    if (!candidate) {
      EXPECT_EQ(candidate.error().kind, ErrorKind::Capacity) << to_string(candidate.error());
      continue;
    }
    const Result<Compiled> compiled = candidates->finish(*candidate);
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    for (const Finding& finding : check_program(compiled->program, 3))
      FAIL() << seed << ": " << finding.text << "\n" << to_string(way);
    const Images images = random_images(network, config, rng);
    const Result<Images> results = run_program(compiled->program, images);
    ASSERT_TRUE(results) << to_string(results.error());
    ASSERT_EQ(difference(network, images, *results), "")
        << "seed " << seed << ", " << to_string(way) << "\n"
        << describe(network) << to_toml(config);
    ++made;
  }
  EXPECT_GT(made, 120);
}

// Weights may differ: no time depends on them.
TEST(DpuWay, NetworksOfOneShapeHaveOneText) {
  const auto text = [](int64_t channels, int kernel, bool last, int8_t weight) {
    NetBuilder net;
    const ValueId x = net.conv(net.input(16, 9, 9), channels, square(kernel, 1, kernel / 2));
    Network network = net.finish({last ? net.add(x, x) : net.max_pool(x, square(1))});
    std::get<ConvLayer>(network.layers[0].op).weights[0] = weight;
    return shape_text(network);
  };
  const std::string one = text(16, 3, true, 1);
  EXPECT_EQ(one, text(16, 3, true, 2));
  EXPECT_NE(one, text(32, 3, true, 1));
  EXPECT_NE(one, text(16, 1, true, 1));
  EXPECT_NE(one, text(16, 3, false, 1));
}

TEST(DpuWay, IsRefusedByOtherNetworks) {
  NetBuilder net;
  const Network network = net.finish({net.conv(net.input(16, 9, 9), 16, square(1))});
  const Result<Candidates> candidates = candidates_of(network, Config());
  ASSERT_TRUE(candidates);
  Way way;
  way.rows[7] = 4;
  EXPECT_EQ(candidates->make(way).error().kind, ErrorKind::NotApplicable);
  way = Way();
  way.form = Form::StridesReordered;
  EXPECT_EQ(candidates->make(way).error().kind, ErrorKind::NotApplicable);
}

// Two branches of two convolutions each.
struct Branches {
  Network network;
  Lowered lowered;
};
Branches two_branches() {
  NetBuilder net;
  const ValueId x = net.input(64, 28, 28);
  const ValueId a = net.conv(net.conv(x, 64, square(1)), 32, square(3, 1, 1));   // conv1, conv2
  const ValueId b = net.conv(net.conv(x, 16, square(1)), 128, square(3, 1, 1));  // conv3, conv4
  Branches made;
  made.network = net.finish({net.conv(net.concat({a, b}), 32, square(1))});
  made.lowered = *lower(made.network, Config());
  return made;
}

TEST(DpuOrder, BranchesSideBySideOrOneAfterTheOther) {
  const Lowered lowered = two_branches().lowered;
  Way way;
  EXPECT_THAT(layer_names(lowered, order_nodes(lowered, way)),
              ElementsAre("conv1", "conv2", "conv3", "conv4", "conv6"));
  way.schedule = Schedule::BreadthFirst;
  EXPECT_THAT(layer_names(lowered, order_nodes(lowered, way)),
              ElementsAre("conv1", "conv3", "conv2", "conv4", "conv6"));
  way.schedule = Schedule::DepthFirst;
  EXPECT_THAT(layer_names(lowered, order_nodes(lowered, way)),
              ElementsAre("conv1", "conv2", "conv3", "conv4", "conv6"));
  // 64 x 32 x 9 products are more than 16 x 128 x 9 with its 1x1 convolution before it.
  way.schedule = Schedule::LongestWay;
  EXPECT_EQ(layer_names(lowered, order_nodes(lowered, way))[0], "conv1");
  // The narrow map first: 1 group instead of 4.
  way.schedule = Schedule::LeastLive;
  EXPECT_EQ(layer_names(lowered, order_nodes(lowered, way))[0], "conv3");
}

TEST(DpuOrder, PutsOff) {
  const Lowered lowered = two_branches().lowered;
  Way way;
  way.later[0] = 2;  // conv1
  EXPECT_THAT(layer_names(lowered, order_nodes(lowered, way)),
              ElementsAre("conv3", "conv4", "conv1", "conv2", "conv6"));
  way.later[0] = 1;
  EXPECT_THAT(layer_names(lowered, order_nodes(lowered, way)),
              ElementsAre("conv3", "conv1", "conv2", "conv4", "conv6"));
}

// Whatever is asked for, all that a node reads is there.
TEST(DpuOrder, KeepsWhatMustComeBefore) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed + 50'000);
    const Network network = random_network(rng, 12, 20);
    const Result<Lowered> lowered = lower(network, random_config(rng, 1));
    if (!lowered) continue;
    const int nodes = static_cast<int>(lowered->nodes.size());
    const std::vector<int> order = order_nodes(*lowered, random_way(rng, Form::Plain, nodes, 0));
    ASSERT_EQ(order.size(), lowered->nodes.size());
    std::vector<int> at(order.size(), -1);
    for (size_t i = 0; i < order.size(); ++i)
      at[static_cast<size_t>(order[i])] = static_cast<int>(i);
    for (int n = 0; n < nodes; ++n)
      for (int m = 0; m < n; ++m)
        for (const View& view : lowered->nodes[static_cast<size_t>(n)].in) {
          const View& made = lowered->nodes[static_cast<size_t>(m)].out;
          const bool reads = view.root == made.root && view.group < made.group + made.groups &&
                             made.group < view.group + view.groups;
          if (!reads) continue;
          EXPECT_LT(at[static_cast<size_t>(m)], at[static_cast<size_t>(n)]) << seed;
        }
  }
}

TEST(DpuOrder, CompileTriesOrdersAndTellsOfThem) {
  const Network network = two_branches().network;
  Config config = *load_config("dpu-paper");
  const Result<Compiled> compiled = compile(network, config);
  ASSERT_TRUE(compiled);
  std::vector<std::string> tried;
  uint64_t least = UINT64_MAX;
  for (const Attempt& attempt : compiled->attempts) {
    tried.push_back(attempt.what);
    if (attempt.why.empty()) least = std::min(least, attempt.cycles);
  }
  EXPECT_THAT(tried, testing::Contains(testing::StartsWith("breadth first, fused")));
  EXPECT_THAT(tried, testing::Contains(testing::StartsWith("least memory first, fused")));
  // The one taken is the fastest, and asked for alone it is the same.
  CompileOptions options;
  options.way = compiled->way;
  const Result<Compiled> again = compile(network, config, options);
  ASSERT_TRUE(again);
  ASSERT_EQ(again->attempts.size(), 1u);
  EXPECT_EQ(again->attempts[0].cycles, least);
  EXPECT_EQ(serialise(again->program), serialise(compiled->program));
}

// A way that does not work is told, and the search goes on as without it.
TEST(DpuOrder, WaysOfOthersDoNoHarm) {
  const Network network = two_branches().network;
  CompileOptions options;
  options.way.emplace();
  options.way->later[1000] = 1;
  const Result<Compiled> compiled = compile(network, Config(), options);
  ASSERT_TRUE(compiled);
  EXPECT_THAT(compiled->attempts[0].why, HasSubstr("another network"));
  EXPECT_EQ(compiled->attempts.size(), compile(network, Config())->attempts.size() + 1);
}

// With branches in parallel the weights of a layer of another branch come while CONV works; with
// branches in turn they come after it.
TEST(DpuOrder, WeightsOfOtherBranchesComeMeanwhile) {
  const Network network = two_branches().network;
  const auto early = [&](bool parallel) {
    Config config = *load_config("dpu-paper");
    config.compiler.parallel_branches = parallel;
    CompileOptions options;
    options.way.emplace();
    options.way->schedule = Schedule::BreadthFirst;
    const Result<Compiled> compiled = compile(network, config, options);
    int loads = 0, before_last_conv = 0;
    for (const Insn& insn : compiled->program.runs[0].insns) {
      const auto* load = std::get_if<Load>(&insn.op);
      if (load != nullptr) loads += load->mode;
      if (std::holds_alternative<Conv>(insn.op)) before_last_conv += loads > 1;
      if (compiled->program.runs[0].spans[1].begin <=
          static_cast<size_t>(&insn - compiled->program.runs[0].insns.data()))
        break;
    }
    return before_last_conv;
  };
  EXPECT_EQ(early(false), 0);
  EXPECT_GT(early(true), 0);
}

}  // namespace
}  // namespace tilewright::dpu
