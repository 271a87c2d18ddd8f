// The best mapping of a layer on a design.
#pragma once

#include <optional>

#include "tilewright/cost/spatial/model.h"

namespace tilewright::cost {

struct SpatialMapperOptions {
  /// Tiles of all loops together that are all considered; of more, sizes are thinned out evenly.
  int64_t tiles = 4000;
  /// Nothing is skipped by a bound: for tests.
  bool brute_force = false;
  /// Those that are considered; empty: all.
  std::vector<SpatialChoice> choices;
  /// Best mappings of the layer on designs with the same unit, dataflow and lanes. They change how
  /// soon others are skipped, never the result.
  std::vector<SpatialMapping> known;
};

struct SpatialBest {
  SpatialMapping mapping;
  SpatialCost cost;
  bool exact = false;     ///< no tile was left out of the space
  int64_t predicted = 0;  ///< mappings whose cycles were predicted or proved to be too many
  int64_t skipped = 0;    ///< tiles skipped by their bound
};

/// Choices without those that only differ from an earlier one by a loop of one lane, which is like
/// any other: these cost the same.
std::vector<SpatialChoice> distinct_choices(const spatial::Design& design,
                                            const SpatialLayer& layer);

/// Tiles that the mapper considers for a loop: sizes that make a number of equal parts, and those
/// rounded up to whole lanes. Where so many lanes are too many for a memory, whatever the other
/// loops have, halves of them, too: 1 024 lanes for outputs, but biases for 512. Ascending.
std::vector<int64_t> tile_sizes(const SpatialEvaluator& evaluator, int loop);

/// Over all choices, tiles of `tile_sizes`, orders and copies, by SpatialEvaluator::cycles and,
/// where these are about equal, by energy (cost/spatial/score.h); ties go to what comes first. The
/// cost of the best is that of `evaluate`. Nothing: no tile fits.
std::optional<SpatialBest> best_mapping(const spatial::Design& design, const SpatialLayer& layer,
                                        const SpatialMapperOptions& options = {});

}  // namespace tilewright::cost
