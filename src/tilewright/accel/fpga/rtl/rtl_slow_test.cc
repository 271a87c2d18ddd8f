// The Verilog under Verilator against the cycle simulator: what is computed, and in how many
// cycles.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tilewright/accel/common/rtl/lint.h"
#include "tilewright/accel/fpga/merge.h"
#include "tilewright/accel/fpga/rtl/harness.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/accel/fpga/sim/testing/random_memory.h"
#include "tilewright/accel/fpga/testing/matmul_design.h"
#include "tilewright/accel/fpga/testing/random_design.h"

namespace tilewright::fpga {
namespace {

using testing::Matmul;
using testing::random_memory;

void expect_matmul(RtlModel& model, const Matmul& shape, const MemoryTiming& memory, Rng& rng) {
  const Design design = testing::design_of(shape);
  std::vector<std::string> simulated = testing::arguments_of(shape, rng), run = simulated;
  const std::string product = testing::product_of(shape, simulated);
  RunOptions options;
  options.memory = memory;
  options.max_cycles = 1'000'000;
  const auto tsim = simulate(design, options, simulated);
  ASSERT_TRUE(tsim) << to_string(tsim.error()) << to_text(design);
  EXPECT_TRUE(simulated[2] == product) << to_text(design);
  const auto rtl = model.run(design, options, run);
  ASSERT_TRUE(rtl) << to_string(rtl.error()) << to_text(design);
  EXPECT_TRUE(run[2] == product) << to_text(design);
  EXPECT_EQ(tsim->cycles, rtl->cycles) << to_text(design);
}

Matmul odd_shape() {
  Matmul shape;
  shape.m = 6;
  shape.n = 10;
  shape.k = 14;
  return shape;
}

TEST(FpgaRtlSlow, IsLintClean) {
  const Design design = testing::design_of(odd_shape());
  for (const Numbers numbers : {Numbers::Fixed, Numbers::Table}) {
    const Status status = accel::lint_clean(kTop, verilog(design, numbers).text);
    EXPECT_TRUE(status) << to_string(status.error());
  }
}

TEST(FpgaRtlSlow, AMatmulByHand) {
  const Matmul shape = odd_shape();
  const auto model = make_rtl(testing::design_of(shape), Numbers::Fixed);
  ASSERT_TRUE(model) << to_string(model.error());
  Rng rng(1);
  expect_matmul(**model, shape, {}, rng);
}

/// The structure that one build is made of.
Matmul many_shapes() {
  Matmul shape = odd_shape();
  shape.un = 4;
  shape.slots = 3;
  shape.words = 256;
  shape.bus.beat_bytes = 16;
  shape.bus.burst_beats = 8;
  shape.bus.outstanding = 3;
  shape.bus.write_fifo = 5;
  shape.n = shape.tn = 8;
  return shape;
}

/// Extents, tiles and addresses are numbers of the table: one build serves all of these.
TEST(FpgaRtlSlow, MatmulsOfManyShapesOnOneBuild) {
  Rng rng(2);
  Matmul shape = many_shapes();
  const auto model = make_rtl(testing::design_of(shape), Numbers::Table);
  ASSERT_TRUE(model) << to_string(model.error());
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    shape.tm = rng.between(3, 9);
    shape.tn = 4 * rng.between(2, 5);
    shape.tk = 2 * rng.between(1, 9);
    shape.m = rng.between(1, 30);
    shape.n = 4 * rng.between(1, 12);
    shape.k = 2 * rng.between(1, 40);
    expect_matmul(**model, shape, random_memory(rng), rng);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Adds what changes nothing: a counter of one turn, and a condition of its own to each store.
void add_idle_parts(Nest& nest) {
  nest.extents.insert(nest.extents.begin(), 1);
  const auto shift = [](Affine& affine) {
    if (!affine.counters.empty()) affine.counters.insert(affine.counters.begin(), 0);
  };
  for (Node& node : nest.nodes) {
    shift(node.place.word);
    for (Range& range : node.ranges) shift(range.value);
  }
  for (Store& store : nest.stores) {
    shift(store.place.word);
    store.ranges.push_back({{0, {}, {1}}, 1});
  }
}

/// Designs with memories of their own become one: a build, that of the test above, serves all.
TEST(FpgaRtlSlow, MergedDesignsOnOneBuild) {
  Rng rng(5);
  std::vector<Matmul> shapes(3, many_shapes());
  shapes[1].words = shapes[2].words = 0;  // what their tiles need
  shapes[1].k = 20;
  shapes[1].tk = 10;
  shapes[2].m = 17;
  shapes[2].tm = 5;
  std::vector<Design> designs;
  for (const Matmul& shape : shapes) designs.push_back(testing::design_of(shape));
  const auto merged = merge(designs);
  ASSERT_TRUE(merged) << to_string(merged.error());
  const auto model = make_rtl((*merged)[0], Numbers::Table);
  ASSERT_TRUE(model) << to_string(model.error());
  // In the simulator also beside a design with more counters and conditions.
  std::vector<Design> uneven = designs;
  for (Item& item : uneven[2].processes[2].items)
    if (auto* nest = std::get_if<Nest>(&item)) add_idle_parts(*nest);
  const auto evened = merge(uneven);
  ASSERT_TRUE(evened) << to_string(evened.error());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<std::string> given = testing::arguments_of(shapes[i], rng);
    const std::string product = testing::product_of(shapes[i], given);
    RunOptions options;
    options.memory = random_memory(rng);
    std::vector<std::string> alone = given, run = given;
    const auto before = simulate(designs[i], options, alone);
    const auto rtl = (*model)->run((*merged)[i], options, run);
    ASSERT_TRUE(before && rtl) << i;
    EXPECT_TRUE(run[2] == product) << i;
    EXPECT_EQ(rtl->cycles, before->cycles) << i;
    for (const Design& design : {(*merged)[i], (*evened)[i]}) {
      std::vector<std::string> simulated = given;
      const auto tsim = simulate(design, options, simulated);
      ASSERT_TRUE(tsim) << to_string(tsim.error());
      EXPECT_TRUE(simulated[2] == product) << i;
      EXPECT_EQ(tsim->cycles, before->cycles) << i;
    }
  }
}

/// Designs of one structure, with a table of their numbers on one build.
void expect_random_designs(uint64_t seed, int count, Numbers numbers = Numbers::Table) {
  const testing::Structure structure = testing::random_structure(seed);
  Rng rng(seed);
  std::unique_ptr<RtlModel> model;
  for (int i = 0; i < count; ++i) {
    const testing::Sizes sizes = testing::random_sizes(rng);
    const Design design = testing::random_design(structure, sizes);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " design " << i << "\n"
                                      << to_text(design));
    if (model == nullptr || numbers == Numbers::Fixed) {
      auto made = make_rtl(design, numbers);
      ASSERT_TRUE(made) << to_string(made.error());
      model = std::move(*made);
    }
    std::vector<std::string> simulated = testing::random_arguments(structure, sizes, rng);
    std::vector<std::string> run = simulated;
    RunOptions options;
    options.memory = random_memory(rng);
    options.max_cycles = 1'000'000;
    const auto tsim = simulate(design, options, simulated);
    ASSERT_TRUE(tsim) << to_string(tsim.error());
    const auto rtl = model->run(design, options, run);
    ASSERT_TRUE(rtl) << to_string(rtl.error());
    ASSERT_EQ(tsim->cycles, rtl->cycles);
    ASSERT_TRUE(simulated == run);
  }
}

TEST(FpgaRtlSlow, TwentyRandomDesignsOnThreeBuilds) {
  for (const uint64_t seed : {1, 2, 3}) expect_random_designs(seed, seed == 1 ? 6 : 7);
}

/// Counters and addresses are as narrow as their values let them be.
TEST(FpgaRtlSlow, FourRandomDesignsWithFixedNumbers) {
  for (const uint64_t seed : {4, 5}) expect_random_designs(seed, 2, Numbers::Fixed);
}

TEST(FpgaRtlFull, RandomDesigns) {
  const char* from = std::getenv("TW_SEED");
  const uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 100;
  for (uint64_t seed = first; seed < first + 20; ++seed) {
    expect_random_designs(seed, 10);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// `text` with one place changed.
std::string broken(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// Whether the Verilog `text` does anything else than the simulator says.
bool differs(const Matmul& shape, const std::string& text) {
  const Design design = testing::design_of(shape);
  const auto model = rtl::model_of(design, Numbers::Table, text);
  EXPECT_TRUE(model) << to_string(model.error());
  if (!model) return false;
  Rng rng(3);
  std::vector<std::string> simulated = testing::arguments_of(shape, rng), run = simulated;
  RunOptions options;
  options.max_cycles = 200'000;
  const auto tsim = simulate(design, options, simulated);
  EXPECT_TRUE(tsim) << to_string(tsim.error());
  const auto rtl = (*model)->run(design, options, run);
  return !rtl || rtl->cycles != tsim->cycles || run != simulated;
}

TEST(FpgaRtlFull, BrokenVerilogIsFound) {
  Matmul shape = odd_shape();
  shape.m = 118;  // a row crosses 4 KiB, the last tile is not full
  shape.k = 44;
  shape.tk = 22;
  const std::string good = verilog(testing::design_of(shape), Numbers::Table).text;
  EXPECT_FALSE(differs(shape, good));
  const std::pair<const char*, const char*> mutants[] = {
      {".up(run && ", ".up(1'b0 && "},         // a release is dropped
      {"{p2_slot0[0:0]", "{~p2_slot0[0:0]"},   // the other slot
      {" < numbers", " <= numbers"},           // a guard is off by one
      {"PER_PAGE = 4096", "PER_PAGE = 8192"},  // bursts cross 4 KiB
  };
  for (const auto& [from, to] : mutants)
    EXPECT_TRUE(differs(shape, broken(good, from, to))) << from << " -> " << to;
}

}  // namespace
}  // namespace tilewright::fpga
