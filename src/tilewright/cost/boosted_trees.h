// Gradient-boosted trees that rank candidates by the features of their loop programs.
#pragma once

#include <memory>

#include "tilewright/base/result.h"
#include "tilewright/search/searcher.h"

namespace tilewright::cost {

/// Few, shallow trees: hundreds of samples are all there is. source: the values of AutoTVM's public
/// code, except `rounds`, which it finds by early stopping.
struct BoostedTreesOptions {
  int rounds = 60;
  int depth = 3;
  double learning_rate = 0.3;
  /// Order pairs of candidates; false: fit log2 of the cost.
  bool rank = true;
  uint64_t seed = 0;
};

/// Trees fitted anew by every `fit`; same samples, same scores. Invalid candidates rank below all
/// others. A model that was never fitted scores everything 0.
///   errors: Unsupported where the build has no XGBoost.
///   source: XGBoost (KDD 2016); the rank objective is that of the TVM paper, section 5.2.
Result<std::unique_ptr<search::Model>> boosted_trees(const BoostedTreesOptions& options = {});

}  // namespace tilewright::cost
