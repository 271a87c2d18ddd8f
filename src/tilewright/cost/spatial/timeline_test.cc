// Programs in which arrays, LOADs and STOREs hold each other up, against the cycle simulator. Each
// stands for a class of programs that the model once had 10 to 24 % too fast or too slow.
#include "tilewright/cost/spatial/timeline.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/cost/spatial/model.h"
#include "tilewright/cost/spatial/testing/program.h"

namespace tilewright::cost {
namespace {

using spatial::Dataflow;
using spatial::Design;
using spatial::Links;
using spatial::Unit;

Design design_of(Unit unit, Links links, int rows, int cols, int banks, int bank_bytes) {
  Design design;
  design.unit = unit;
  design.dataflow = Dataflow::OutputStationary;
  design.links = links;
  design.rows = rows;
  design.cols = cols;
  design.banks = banks;
  design.bank_bytes = bank_bytes;
  design.spad_kb = 256;
  design.local_kb = 128;
  return design;
}

void expect_close(const Design& design, const SpatialConv& conv, const char* mapping) {
  ASSERT_TRUE(spatial::problems(design).empty());
  const SpatialLayer layer = conv2d(conv);
  const auto mapped = parse_mapping(layer, mapping);
  ASSERT_TRUE(mapped) << to_string(mapped.error());
  const double model = evaluate(design, layer, *mapped).cycles;
  const auto sim = spatial::simulate(design, program_of(design, layer, *mapped));
  ASSERT_TRUE(sim) << to_string(sim.error());
  EXPECT_NEAR(model / double(sim->cycles), 1, 0.03) << model << ", " << sim->cycles;
}

// Units that fetch for themselves take the port in each step: the next block's weights wait.
TEST(SpatialTimeline, WeightsWaitForUnitsThatFetchForThemselves) {
  Design design = design_of(Unit::Conv2d, Links::None, 4, 4, 7, 16);
  design.bus_bytes = 16;
  design.burst_bytes = 512;
  expect_close(design, {.inputs = 3, .outputs = 59, .height = 5, .width = 7, .kernel = 3},
               "first=input j=k k=c tile=k30,y1,x3,c3,r3,s3 order=x,k,y,s,r,c copies=1,2,2");
}

// The port is idle while both factors find their rows in their lines, and nobody reads ahead then.
TEST(SpatialTimeline, TwoFactorsReadInStep) {
  Design design = design_of(Unit::Dot, Links::Full, 14, 9, 1, 16);
  design.bus_bytes = 16;
  design.burst_bytes = 128;
  expect_close(design,
               {.inputs = 5,
                .outputs = 57,
                .height = 3,
                .width = 15,
                .kernel = 3,
                .input = ImageLayout::ChannelsLast},
               "first=input k=c tile=k15,y1,x13,c5,r3,s3 order=y,x,k,c,r,s copies=2,2,2");
}

// A row of zeros in front keeps the port waiting, and takes an access for each of its elements.
TEST(SpatialTimeline, ZerosStandWhereTheyAre) {
  Design design = design_of(Unit::Gemv, Links::Full, 13, 4, 2, 8);
  design.bus_bytes = 32;
  expect_close(design,
               {.inputs = 51,
                .outputs = 1,
                .height = 4,
                .width = 22,
                .kernel = 3,
                .pad = 1,
                .input = ImageLayout::ChannelsLast},
               "first=input i=x k=r tile=k1,y4,x22,c11,r3,s3 order=k,y,x,c,r,s copies=2,2,2");
}

// The STOREs take longest: they fall behind until COMPUTEs wait for them. Bursts cut their rows.
TEST(SpatialTimeline, StoresThatFallBehindAreFollowed) {
  Design design = design_of(Unit::Gemm, Links::Full, 32, 32, 6, 16);
  design.bus_bytes = 32;
  design.burst_bytes = 128;
  expect_close(design,
               {.inputs = 6,
                .outputs = 30,
                .height = 16,
                .width = 30,
                .kernel = 2,
                .pad = 1,
                .output = ImageLayout::ChannelsLast},
               "first=input i=x j=k k=c tile=k30,y2,x31,c2,r2,s2 order=k,x,y,c,r,s copies=2,2,2");
}

// Elements that are gathered one by one share lines of the scratchpad.
TEST(SpatialTimeline, GatheredElementsShareAccesses) {
  Design design = design_of(Unit::Conv2d, Links::Full, 8, 8, 1, 16);
  design.bus_bytes = 32;
  design.burst_bytes = 512;
  expect_close(design, {.inputs = 33, .outputs = 19, .height = 30, .width = 8},
               "first=input j=k k=c tile=k19,y4,x8,c33,r1,s1 order=k,x,y,c,r,s copies=2,2,2");
}

// The weights' LOAD comes first: rows of the input are written when most blocks are read.
TEST(SpatialTimeline, LoadsMeetTheArrayWhereItIs) {
  Design design = design_of(Unit::Conv2d, Links::Full, 16, 16, 7, 16);
  design.bus_bytes = 16;
  expect_close(design,
               {.inputs = 45,
                .outputs = 18,
                .height = 9,
                .width = 16,
                .kernel = 3,
                .pad = 1,
                .input = ImageLayout::ChannelsLast},
               "first=input j=k k=c tile=k18,y1,x16,c45,r1,s3 order=k,x,y,c,r,s copies=2,2,2");
}

}  // namespace
}  // namespace tilewright::cost
