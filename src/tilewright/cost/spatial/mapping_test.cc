#include "tilewright/cost/spatial/mapping.h"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/cost/spatial/model.h"
#include "tilewright/cost/spatial/testing/cases.h"

namespace tilewright::cost {
namespace {

using spatial::Design;
using spatial::Unit;

SpatialLayer small_conv() {
  return conv2d({.inputs = 64, .outputs = 32, .height = 14, .width = 14, .kernel = 3, .pad = 1});
}

/// Sets of loops, as in "kxc": roles do not count.
std::set<std::string> loop_sets(Unit unit, const SpatialLayer& layer) {
  Design design;
  design.unit = unit;
  std::set<std::string> sets;
  for (const SpatialChoice& choice : choices(design, layer)) {
    std::string loops;
    for (int loop = 0; loop < int(layer.loops.size()); ++loop)
      if (loop == choice.i || loop == choice.j || loop == choice.k) loops += layer.loops[loop].name;
    sets.insert(loops);
  }
  return sets;
}

TEST(SpatialMapping, ChoicesOfAConvolution) {
  using Sets = std::set<std::string>;
  EXPECT_EQ(loop_sets(Unit::Gemm, small_conv()), (Sets{"kxc", "kyc", "kys", "kxr"}));
  EXPECT_EQ(loop_sets(Unit::Gemv, small_conv()), (Sets{"kc", "kr", "ks", "xc", "xr", "yc", "ys"}));
  EXPECT_EQ(loop_sets(Unit::Dot, small_conv()), (Sets{"c", "r", "s"}));
  EXPECT_EQ(loop_sets(Unit::Conv2d, small_conv()), (Sets{"kc"}));
  EXPECT_EQ(choices({}, small_conv()).size(), 8u);
  EXPECT_EQ(choices({}, matmul(8, 8, 8)).size(), 2u);
}

TEST(SpatialMapping, TextReadsBack) {
  CaseDraw draw(11);
  for (int i = 0; i < 200; ++i) {
    const Design design = draw.design();
    const SpatialLayer layer = draw.layer(8, design);
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    const auto again = parse_mapping(layer, to_string(layer, mapping));
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(*again, mapping) << to_string(layer, mapping);
  }
}

TEST(SpatialMapping, RefusesWhatIsNoMapping) {
  const SpatialLayer layer = small_conv();
  const std::string good =
      "first=input i=x j=k k=c tile=k32,y14,x14,c64,r3,s3 order=k,y,x,c,r,s copies=2,2,2";
  EXPECT_TRUE(parse_mapping(layer, good));
  for (auto [from, to] : {std::pair{"i=x", "i=z"},
                          {"k32", "k33"},
                          {"k32", "k0"},
                          {"order=k,y", "order=k,k"},
                          {"y,x,c", "y,c,x"},
                          {"copies=2", "copies=3"},
                          {"first=input", "first=image"},
                          {"copies", "times"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string(from).size(), to);
    EXPECT_FALSE(parse_mapping(layer, bad)) << bad;
  }
}

TEST(SpatialMapping, SaysWhereALineIsWrong) {
  const auto wrong = parse_mapping(small_conv(), "first=input i=x  j=k tile=k32,z14");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().place, "31");  // of z14, from 1
  EXPECT_EQ(wrong.error().what, "`z14` is no part of a mapping");
}

// Loops of expressions may be called l1 and l11.
TEST(SpatialMapping, LoopsMayEndInDigits) {
  SpatialLayer layer = matmul(20, 30, 40);
  layer.loops[0].name = "l1", layer.loops[1].name = "l11";
  SpatialMapping mapping;
  mapping.choice = choices({}, layer)[0];
  mapping.tile = {12, 3, 4}, mapping.order = {0, 1, 2};
  const auto again = parse_mapping(layer, to_string(layer, mapping));
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(*again, mapping);
}

TEST(SpatialMapping, SaysWhatDoesNotFit) {
  Design design;
  design.spad_kb = 16;
  design.local_kb = 8;
  const SpatialLayer layer = small_conv();
  const auto mapping =
      parse_mapping(layer, "first=input i=x j=k k=c tile=k32,y14,x14,c64,r3,s3 copies=2,1,2");
  ASSERT_TRUE(mapping);
  const auto reasons = misfits(design, layer, *mapping);
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_EQ(reasons[0],
            "scratchpad: 50.0 KiB of 16 KiB (input 2 x 16.0 KiB, weights 1 x 18.0 KiB)");
  EXPECT_EQ(reasons[1], "private memory: 49.3 KiB of 8 KiB (result 49.0 KiB, weights 0.3 KiB)");
  EXPECT_FALSE(SpatialEvaluator(design, layer, mapping->choice).fits(*mapping));
}

}  // namespace
}  // namespace tilewright::cost
