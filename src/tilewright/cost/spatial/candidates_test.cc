#include "tilewright/cost/spatial/candidates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tilewright/cost/spatial/mapper.h"
#include "tilewright/cost/spatial/testing/cases.h"

namespace tilewright::cost {
namespace {

/// Calls `check` with mappings drawn at random, half of those with packed weights with biases.
void for_mappings(int cases,
                  const std::function<void(SpatialEvaluator&, const SpatialMapping&)>& check) {
  CaseDraw draw(21);
  while (cases > 0) {
    const spatial::Design design = draw.design();
    SpatialLayer layer = draw.layer(draw.one_of({4, 12, 40}), design);
    if (draw.below(2)) {
      layer.tensors[1].packed = true;
      layer.biased = draw.below(2);
    }
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    SpatialEvaluator evaluator(design, layer, mapping.choice);
    check(evaluator, mapping);
    --cases;
  }
}

// What gives a mapping up never does so before the time that the mapping takes.
TEST(SpatialCandidates, MappingsAreGivenUpWhereTheyAreTooSlow) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  int soon = 0;
  for_mappings(600, [&](SpatialEvaluator& evaluator, const SpatialMapping& mapping) {
    const std::string text = to_string(evaluator.unit().layer, mapping);
    SpatialEvaluator alone(evaluator.unit().design, evaluator.unit().layer, mapping.choice);
    const double cycles = alone.cycles(mapping);
    const double before = evaluator.before_computes(evaluator.moved(0, mapping.tile),
                                                    evaluator.moved(1, mapping.tile));
    EXPECT_FALSE(evaluator.computes_take(mapping.tile, cycles - before)) << text;
    EXPECT_EQ(evaluator.cycles_below(mapping, kNever), cycles) << text;
    EXPECT_EQ(evaluator.cycles_below(mapping, cycles * (1 + 1e-6)), cycles) << text;
    soon += evaluator.cycles_below(mapping, cycles / 1.1) == kNever;
  });
  EXPECT_GT(soon, 500);
}

// Four sizes of each loop: all tiles that fit, and those below a limit, have the same bounds as one
// by one.
TEST(SpatialCandidates, AreTheTilesThatFit) {
  CaseDraw draw(22);
  int compared = 0;
  while (compared < 40) {
    const spatial::Design design = draw.design();
    const SpatialLayer layer = draw.layer(12, design);
    const std::vector<SpatialChoice> all = choices(design, layer);
    if (all.empty()) continue;
    SpatialEvaluator evaluator(design, layer, all[static_cast<size_t>(draw.below(all.size()))]);
    std::vector<std::vector<int64_t>> sizes;
    for (int loop = 0; loop < evaluator.unit().loops; ++loop) {
      sizes.push_back(tile_sizes(evaluator, loop));
      if (sizes.back().size() > 4) sizes.back().resize(4);
    }
    constexpr double kUnlimited = std::numeric_limits<double>::infinity();
    const auto candidates = promising_tiles(evaluator, sizes, kUnlimited);
    if (candidates.size() < 3) continue;
    double last = 0;
    for (const SpatialCandidate& one : candidates) {
      SpatialMapping mapping;
      mapping.choice = evaluator.unit().choice;
      mapping.tile = one.tile;
      mapping.copies = {1, 1, 1};
      EXPECT_TRUE(evaluator.fits(mapping));
      EXPECT_EQ(one.least, evaluator.least(one.tile));
      EXPECT_GE(one.least, last);
      last = one.least;
    }
    const double limit = candidates[candidates.size() / 2].least;
    const auto fewer = promising_tiles(evaluator, sizes, limit);
    size_t below = 0;
    while (candidates[below].least < limit) ++below;
    ASSERT_EQ(fewer.size(), below);
    for (size_t i = 0; i < below; ++i) EXPECT_EQ(fewer[i].tile, candidates[i].tile);
    ++compared;
  }
}

}  // namespace
}  // namespace tilewright::cost
