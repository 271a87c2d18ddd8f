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
  return best ? std::log10(best->cost.cycles / opinion(design, layer).cycles) : 0;
}

// Rows of 14 pixels follow each other in DRAM: a LOAD fetches 196 bytes, not 14 at a time.
TEST(Opinion, RowsOfAnImageThatFollowEachOtherAreFetchedTogether) {
  const spatial::Design design = array(spatial::Dataflow::WeightStationary, 32, 4);
  const auto layer = conv2d({.inputs = 1024, .outputs = 256, .height = 14, .width = 14});
  EXPECT_NEAR(off(design, layer), 0, 0.1);
}

// With one bank, each write of a LOAD takes a cycle from the array; with eight, most do not.
TEST(Opinion, LoadsAndTheArrayWantTheSameBank) {
  const auto layer = conv2d({.inputs = 64, .outputs = 256, .height = 56, .width = 56});
  for (const int banks : {1, 8})
    EXPECT_NEAR(off(array(spatial::Dataflow::OutputStationary, 8, banks), layer), 0, 0.1) << banks;
}

}  // namespace
}  // namespace tilewright::codesign
