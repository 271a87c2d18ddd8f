// Accesses in the mean beside those that follow every row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tilewright/cost/spatial/testing/cases.h"

namespace tilewright::cost {
namespace {

/// Accesses of all rows of a tile: in the mean, over what they are.
double mean_over_followed(const SpatialUnit& unit, const SpatialSizes& tile) {
  const double mean =
      unit.mean_accesses(0, tile) + (unit.stationary ? 0 : unit.mean_accesses(1, tile));
  return mean / double(unit.rows(tile).costs().accesses);
}

struct Rows {
  std::string name;
  spatial::Design design;
  SpatialConv conv;
  std::string mapping;
  double off = 0;  ///< at most, as a natural logarithm
};
void PrintTo(const Rows& rows, std::ostream* out) { *out << rows.name; }

const std::vector<Rows>& rows_of_units() {
  using spatial::Links, spatial::Unit;
  static const std::vector<Rows> all = {
      // Rows of 111 bytes, each a byte behind the one before, in lines of 112: most need two lines,
      // and the next one needs the first of these again.
      {"TapsMoveLongRows",
       {.unit = Unit::Gemv, .links = Links::Full, .banks = 7, .bus_bytes = 16},
       {.inputs = 32, .outputs = 64, .height = 111, .width = 111, .kernel = 3, .pad = 1},
       "first=input i=x k=r tile=k4,y5,x111,c32,r3,s3 order=x,y,k,c,r,s copies=2,2,2",
       0.16},
      // Three rows of 61 bytes side by side, then others: a line is left before it ends.
      {"RunsEndWithinALine",
       {.unit = Unit::Dot,
        .rows = 8,
        .cols = 8,
        .links = Links::Full,
        .banks = 2,
        .bank_bytes = 32},
       {.inputs = 61, .outputs = 6, .height = 8, .width = 10, .kernel = 3},
       "first=input k=c tile=k6,y6,x8,c61,r3,s3 order=x,y,k,c,r,s copies=2,2,2",
       0.05}};
  return all;
}

class MeanRowsOfUnits : public testing::TestWithParam<Rows> {};

TEST_P(MeanRowsOfUnits, AreNearThoseThatAreFollowed) {
  const auto& [name, design, conv, text, most] = GetParam();
  ASSERT_TRUE(spatial::problems(design).empty());
  const SpatialLayer layer = conv2d(conv);
  const auto mapping = parse_mapping(layer, text);
  ASSERT_TRUE(mapping) << to_string(mapping.error());
  const SpatialUnit unit(design, layer, mapping->choice);
  EXPECT_NEAR(std::log(mean_over_followed(unit, mapping->tile)), 0, most);
}

INSTANTIATE_TEST_SUITE_P(Named, MeanRowsOfUnits, testing::ValuesIn(rows_of_units()),
                         [](const auto& one) { return one.param.name; });

TEST(MeanRows, AreSeldomFarFromThoseThatAreFollowed) {
  CaseDraw draw(17);
  std::vector<double> off;
  while (off.size() < 600) {
    const spatial::Design design = draw.design();
    const SpatialLayer layer = draw.layer(16, design);
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    const SpatialUnit unit(design, layer, mapping.choice);
    off.push_back(std::abs(std::log(mean_over_followed(unit, mapping.tile))));
  }
  std::sort(off.begin(), off.end());
  std::printf("off by %.1f %% in the median, 9 of 10 within %.1f %%, 98 of 100 within %.1f %%\n",
              100 * off[300], 100 * off[540], 100 * off[588]);
  EXPECT_LE(off[300], 0.01);
  EXPECT_LE(off[540], 0.21);
}

}  // namespace
}  // namespace tilewright::cost
