// Programs in which arrays, LOADs and STOREs hold each other up, against the cycle simulator. Each
// stands for a class of programs that the model once had 4 to 24 % too fast or too slow.
#include "tilewright/cost/spatial/timeline.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/cost/spatial/model.h"
#include "tilewright/cost/spatial/testing/program.h"

namespace tilewright::cost {
namespace {

using spatial::Dataflow;
using spatial::Links;
using spatial::Unit;

struct Meeting {
  std::string name;  ///< what the model must follow
  spatial::Design design;
  SpatialConv conv;
  std::string mapping;
};
void PrintTo(const Meeting& meeting, std::ostream* out) { *out << meeting.name; }

const std::vector<Meeting>& meetings() {
  constexpr Dataflow kStays = Dataflow::OutputStationary;
  constexpr ImageLayout kLast = ImageLayout::ChannelsLast;
  static const std::vector<Meeting> all = {
      // Units that fetch for themselves take the port in each step: the next block's weights wait.
      {"WeightsWaitForUnitsThatFetchForThemselves",
       {.unit = Unit::Conv2d,
        .dataflow = kStays,
        .rows = 4,
        .cols = 4,
        .links = Links::None,
        .banks = 7,
        .local_kb = 128,
        .bus_bytes = 16,
        .burst_bytes = 512},
       {.inputs = 3, .outputs = 59, .height = 5, .width = 7, .kernel = 3},
       "first=input j=k k=c tile=k30,y1,x3,c3,r3,s3 order=x,k,y,s,r,c copies=1,2,2"},
      // The port is idle while both factors find their rows in their lines; nobody reads ahead
      // then.
      {"TwoFactorsReadInStep",
       {.unit = Unit::Dot,
        .dataflow = kStays,
        .rows = 14,
        .cols = 9,
        .links = Links::Full,
        .banks = 1,
        .local_kb = 128,
        .bus_bytes = 16,
        .burst_bytes = 128},
       {.inputs = 5, .outputs = 57, .height = 3, .width = 15, .kernel = 3, .input = kLast},
       "first=input k=c tile=k15,y1,x13,c5,r3,s3 order=y,x,k,c,r,s copies=2,2,2"},
      // A row of zeros in front keeps the port waiting, and takes an access for each element.
      {"ZerosStandWhereTheyAre",
       {.unit = Unit::Gemv,
        .dataflow = kStays,
        .rows = 13,
        .cols = 4,
        .links = Links::Full,
        .banks = 2,
        .bank_bytes = 8,
        .local_kb = 128,
        .bus_bytes = 32},
       {.inputs = 51,
        .outputs = 1,
        .height = 4,
        .width = 22,
        .kernel = 3,
        .pad = 1,
        .input = kLast},
       "first=input i=x k=r tile=k1,y4,x22,c11,r3,s3 order=k,y,x,c,r,s copies=2,2,2"},
      // STOREs take longest: they fall behind until COMPUTEs wait for them. Bursts cut their rows.
      {"StoresThatFallBehindAreFollowed",
       {.dataflow = kStays,
        .rows = 32,
        .cols = 32,
        .links = Links::Full,
        .banks = 6,
        .local_kb = 128,
        .bus_bytes = 32,
        .burst_bytes = 128},
       {.inputs = 6,
        .outputs = 30,
        .height = 16,
        .width = 30,
        .kernel = 2,
        .pad = 1,
        .output = kLast},
       "first=input i=x j=k k=c tile=k30,y2,x31,c2,r2,s2 order=k,x,y,c,r,s copies=2,2,2"},
      // Elements that are gathered one by one share lines of the scratchpad.
      {"GatheredElementsShareAccesses",
       {.unit = Unit::Conv2d,
        .dataflow = kStays,
        .rows = 8,
        .cols = 8,
        .links = Links::Full,
        .banks = 1,
        .local_kb = 128,
        .bus_bytes = 32,
        .burst_bytes = 512},
       {.inputs = 33, .outputs = 19, .height = 30, .width = 8},
       "first=input j=k k=c tile=k19,y4,x8,c33,r1,s1 order=k,x,y,c,r,s copies=2,2,2"},
      // The weights' LOAD comes first: rows of the input are written when most blocks are read.
      {"LoadsMeetTheArrayWhereItIs",
       {.unit = Unit::Conv2d,
        .dataflow = kStays,
        .links = Links::Full,
        .banks = 7,
        .local_kb = 128,
        .bus_bytes = 16},
       {.inputs = 45,
        .outputs = 18,
        .height = 9,
        .width = 16,
        .kernel = 3,
        .pad = 1,
        .input = kLast},
       "first=input j=k k=c tile=k18,y1,x16,c45,r1,s3 order=k,x,y,c,r,s copies=2,2,2"},
      // Which elements of a gathering LOAD share a line follows from where each lies.
      {"GatheredElementsLieWhereTheyDo",
       {.dataflow = kStays,
        .rows = 32,
        .cols = 32,
        .links = Links::None,
        .spad_kb = 64,
        .banks = 1,
        .bus_bytes = 32,
        .burst_bytes = 128},
       {.inputs = 17,
        .outputs = 9,
        .height = 15,
        .width = 18,
        .kernel = 2,
        .stride = 2,
        .pad = 1,
        .output = kLast},
       "first=input i=x j=k k=c tile=k9,y4,x10,c17,r2,s1 order=k,x,y,c,r,s copies=2,2,2"},
      // Rows that units fetch for themselves reach into another line, where they begin late.
      {"RowsOfUnitsThatFetchForThemselvesBeginAnywhere",
       {.dataflow = kStays,
        .rows = 12,
        .cols = 2,
        .links = Links::None,
        .spad_kb = 128,
        .banks = 1,
        .bank_bytes = 32,
        .local_kb = 16,
        .burst_bytes = 512},
       {.inputs = 27, .outputs = 39, .height = 19, .width = 29, .input = kLast},
       "first=weights i=k j=y k=c tile=k39,y2,x6,c27,r1,s1 order=k,y,x,c,r,s copies=2,2,2"},
      // A STORE that is done while a loop goes on is not done later for that.
      {"WhatALoopDoesNotDoIsNotLater",
       {.dataflow = kStays,
        .rows = 12,
        .cols = 4,
        .links = Links::Full,
        .spad_kb = 16,
        .banks = 1,
        .local_kb = 128},
       {.inputs = 4, .outputs = 16, .height = 13, .width = 15, .output = kLast},
       "first=weights i=k j=x k=c tile=k16,y5,x15,c1,r1,s1 order=k,x,y,c,r,s copies=2,2,2"},
      // A LOAD that takes a few accesses from an array brings its two streams into a better step.
      {"ALoadCanMakeAnArrayFaster",
       {.unit = Unit::Dot,
        .dataflow = kStays,
        .rows = 2,
        .cols = 5,
        .links = Links::Full,
        .spad_kb = 128,
        .banks = 8,
        .local_kb = 16,
        .bus_bytes = 16,
        .burst_bytes = 512},
       {.inputs = 16,
        .outputs = 49,
        .height = 29,
        .width = 31,
        .kernel = 3,
        .input = kLast,
        .output = kLast},
       "first=input k=c tile=k49,y27,x1,c16,r3,s3 order=k,y,x,c,r,s copies=2,2,2"},
      // The second LOAD meets the array as the first one left it.
      {"TwoLoadsMeetTheSameArray",
       {.unit = Unit::Gemv,
        .dataflow = kStays,
        .rows = 4,
        .cols = 4,
        .links = Links::Full,
        .banks = 3,
        .bus_bytes = 32,
        .burst_bytes = 128},
       {.inputs = 29,
        .outputs = 38,
        .height = 31,
        .width = 9,
        .kernel = 3,
        .pad = 1,
        .input = kLast,
        .output = kLast},
       "first=weights i=k k=c tile=k32,y31,x5,c29,r1,s3 order=y,x,k,c,r,s copies=2,2,2"},
      // A COMPUTE that LOADs delay keeps its STORE waiting, and this the next one.
      {"StoresWaitForTheOneBefore",
       {.dataflow = kStays,
        .rows = 8,
        .cols = 8,
        .links = Links::Full,
        .spad_kb = 128,
        .banks = 1,
        .bus_bytes = 16,
        .burst_bytes = 128},
       {.inputs = 29, .outputs = 54, .height = 5, .width = 18, .input = kLast, .output = kLast},
       "first=input i=x j=k k=c tile=k24,y3,x8,c29,r1,s1 order=x,y,k,c,r,s copies=2,2,2"}};
  return all;
}

class SpatialMeetings : public testing::TestWithParam<Meeting> {};

TEST_P(SpatialMeetings, EqualsTheSimulatorClosely) {
  const auto& [name, design, conv, mapping] = GetParam();
  ASSERT_TRUE(spatial::problems(design).empty());
  const SpatialLayer layer = conv2d(conv);
  const auto mapped = parse_mapping(layer, mapping);
  ASSERT_TRUE(mapped) << to_string(mapped.error());
  const double model = evaluate(design, layer, *mapped).cycles;
  const auto sim = spatial::simulate(design, program_of(design, layer, *mapped));
  ASSERT_TRUE(sim) << to_string(sim.error());
  EXPECT_NEAR(model / double(sim->cycles), 1, 0.003) << model << ", " << sim->cycles;
}

INSTANTIATE_TEST_SUITE_P(Timeline, SpatialMeetings, testing::ValuesIn(meetings()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace tilewright::cost
