// Opinions beside the mapper, which follows every tile.
#include "tilewright/codesign/opinion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/cost/spatial/mapper.h"

namespace tilewright::codesign {
namespace {

using cost::conv2d;

spatial::Design array(spatial::Dataflow dataflow, int side, int banks) {
  spatial::Design design;
  design.dataflow = dataflow;
  design.rows = design.cols = side;
  design.banks = banks;
  return design;
}

/// How far the mapper is above the opinion, as log10.
double off(const spatial::Design& design, const cost::SpatialLayer& layer) {
  const auto best = cost::best_mapping(design, layer);
  EXPECT_TRUE(best);
  return best ? std::log10(best->cost.cycles / opinion(design, layer)->cycles) : 0;
}

// Rows of 14 pixels follow each other in DRAM: a LOAD fetches 196 bytes, not 14 at a time.
TEST(Opinion, RowsOfAnImageThatFollowEachOtherAreFetchedTogether) {
  const spatial::Design design = array(spatial::Dataflow::WeightStationary, 32, 4);
  const auto layer = conv2d({.inputs = 1024, .outputs = 256, .height = 14, .width = 14});
  EXPECT_NEAR(off(design, layer), 0, 0.12);
}

// With one bank, each write of a LOAD takes a cycle from the array; with eight, most do not.
TEST(Opinion, LoadsAndTheArrayWantTheSameBank) {
  const auto layer = conv2d({.inputs = 64, .outputs = 256, .height = 56, .width = 56});
  for (const int banks : {1, 8})
    EXPECT_NEAR(off(array(spatial::Dataflow::OutputStationary, 8, banks), layer), 0, 0.1) << banks;
}

// A GEMV unit of 1 024 lanes for 728 outputs, of which a tile may have 512, by its biases: two
// tiles with 364 lanes at work, in twice the steps, and rows of 364 bytes of weights.
TEST(Opinion, LanesThatBiasesForbidAreIdle) {
  spatial::Design design = array(spatial::Dataflow::WeightStationary, 32, 8);
  design.unit = spatial::Unit::Gemv;
  design.links = spatial::Links::Full;
  design.local_kb = 256;
  const auto layer = conv2d({.inputs = 728, .outputs = 728, .height = 19, .width = 19});
  const auto best = cost::best_mapping(design, layer);
  ASSERT_TRUE(best);
  const LayerOpinion expected = *opinion(design, layer);
  EXPECT_EQ(best->cost.steps, 2 * 728 * 19 * 19);
  EXPECT_EQ(expected.steps, 2 * 728 * 19 * 19);
  EXPECT_NEAR(static_cast<double>(best->cost.spad_reads[0] + best->cost.spad_reads[1]) /
                  expected.spad_reads,
              1, 0.01);
}

// 1 024 lanes for outputs of which 364 are at work: a LOAD of their weights writes a whole line
// with an access, not what comes in a beat. Lanes for the 19 pixels of a row would take 19 times
// the steps.
TEST(Opinion, LoadsWriteWholeLines) {
  spatial::Design design = array(spatial::Dataflow::WeightStationary, 32, 1);
  design.unit = spatial::Unit::Gemv;
  design.links = spatial::Links::Full;
  design.spad_kb = 128;
  design.local_kb = 64;
  const auto layer = conv2d({.inputs = 728, .outputs = 728, .height = 19, .width = 19});
  EXPECT_EQ(opinion(design, layer)->steps, 2 * 728 * 19 * 19);
  EXPECT_NEAR(off(design, layer), 0, 0.05);
}

// Sums of two rows of the image fit: each tile loads two rows more, of those above and below.
TEST(Opinion, WindowsOfTilesOverlap) {
  spatial::Design design = array(spatial::Dataflow::OutputStationary, 16, 8);
  design.local_kb = 16;
  const auto layer =
      conv2d({.inputs = 16, .outputs = 16, .height = 64, .width = 64, .kernel = 3, .pad = 1});
  const double image = 16 * 64 * 64, weights = 16 * 16 * 9;
  EXPECT_NEAR(opinion(design, layer)->load_bytes / (2 * image + weights), 1, 0.05);
}

TEST(Opinion, NoneWhereTheUnitHasNoChoice) {
  spatial::Design design = array(spatial::Dataflow::WeightStationary, 8, 4);
  design.unit = spatial::Unit::Conv2d;
  EXPECT_FALSE(opinion(design, cost::matmul(64, 64, 64)));
}

}  // namespace
}  // namespace tilewright::codesign
