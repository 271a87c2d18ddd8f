// Layers that a unit cannot do, and why.
#include "tilewright/codesign/unmatched.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::codesign {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

spatial::Design unit(spatial::Unit of) {
  spatial::Design design;
  design.unit = of;
  return design;
}

TEST(Unmatched, SaysWhichLoopsAreNotThere) {
  const cost::SpatialLayer product = cost::matmul(8, 8, 8);
  const cost::SpatialLayer conv =
      cost::conv2d({.inputs = 4, .outputs = 4, .height = 8, .width = 8});
  for (const spatial::Unit of : {spatial::Unit::Gemm, spatial::Unit::Gemv, spatial::Unit::Dot}) {
    EXPECT_THAT(unmatched(unit(of), product), IsEmpty());
    EXPECT_THAT(unmatched(unit(of), conv), IsEmpty());
  }
  EXPECT_THAT(unmatched(unit(spatial::Unit::Conv2d), conv), IsEmpty());
  EXPECT_THAT(unmatched(unit(spatial::Unit::Conv2d), product), HasSubstr("over 0 of its axes"));
  cost::SpatialLayer batched = product;  // i moves both factors
  batched.tensors[1].dims.push_back(batched.tensors[0].dims[0]);
  EXPECT_THAT(unmatched(unit(spatial::Unit::Gemm), batched), HasSubstr("one factor alone"));
  EXPECT_THAT(unmatched(vta::Config(), batched), HasSubstr("both factors"));
  EXPECT_THAT(unmatched(vta::Config(), conv), IsEmpty());
}

TEST(Unmatched, OneUnitThatMatchesOneLayerIsEnough) {
  Workload workload;
  workload.name = "net";
  workload.layers.push_back({cost::matmul(8, 8, 8), 1, {"a"}});
  workload.layers.push_back({cost::matmul(4, 8, 8), 1, {"b"}});
  const Hardware conv = unit(spatial::Unit::Conv2d), gemm = unit(spatial::Unit::Gemm);
  EXPECT_TRUE(check_matches({conv, gemm}, workload));
  const Status refused = check_matches({conv}, workload);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(refused.error().others.size(), 2u);
}

TEST(Unmatched, UnitsOfASpaceAreThoseOfItsIntrinsic) {
  EXPECT_EQ(units_of(*load_space("edge")).size(), 2u);
  EXPECT_EQ(units_of(*load_space("hasco-dot")).size(), 1u);
  const std::vector<Hardware> vta = units_of(*load_space("vta"));
  ASSERT_EQ(vta.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<vta::Config>(vta[0]));
}

TEST(Unmatched, DesignsWhoseUnitRunsNothingAreOfNoUse) {
  const DesignSpace space = *load_space("edge");
  Workload products, both;
  products.layers.push_back({cost::matmul(8, 8, 8), 1, {"a"}});
  both = products;
  both.layers.push_back(
      {cost::conv2d({.inputs = 4, .outputs = 4, .height = 8, .width = 8}), 1, {"b"}});
  EXPECT_THAT(idle_units(space, products), ElementsAre("conv2d"));
  EXPECT_THAT(idle_units(space, both), IsEmpty());
  const auto of_products = useful_points(space, products), of_both = useful_points(space, both);
  int idle = 0, legal = 0;
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    const search::Point point = space.points().random(rng);
    EXPECT_EQ(of_both(point), space.legal(point));
    if (!space.legal(point)) continue;
    ++legal;
    const bool conv = space.design(point).unit == spatial::Unit::Conv2d;
    EXPECT_EQ(of_products(point), !conv);
    idle += conv;
  }
  EXPECT_GT(idle, 0);
  EXPECT_LT(idle, legal);
}

}  // namespace
}  // namespace tilewright::codesign
