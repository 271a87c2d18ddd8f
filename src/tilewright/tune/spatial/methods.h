// Ways to find the mapping of a layer, by the names that people type.
//
// Example: `find_mapping(design, layer, {.method = "hasco", .trials = 500})` is what HASCO's search
// of software has found after 500 mappings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/tune/spatial/space.h"

namespace tilewright::tune {

/// `random`, `annealing`, `p`, `q`, `q-released`, `evolution`, `xgb`, `prior` (by the bound of a
/// mapping's cycles), `hasco` (the cheapest trials are starts, a network chooses moves from them).
std::vector<std::string> spatial_searchers();
/// A searcher of `space`, which must outlive it, as must the judge. errors: Usage (no such one,
/// with the nearest), Unsupported (this build lacks what it needs).
Result<std::unique_ptr<search::Searcher>> spatial_searcher(const std::string& name,
                                                           const SpatialSpace& space,
                                                           SpatialJudge& judge, uint64_t seed);

/// A way to search: which space by which searcher.
struct MappingMethod {
  const char* name;
  const char* searcher;  ///< empty: the mapper, which needs no search
  SpatialForm form = SpatialForm::All;
  bool calls_only = false;
  const char* about = "";
};
/// `ours` (cost/spatial/mapper.h), `hasco`, `hasco-calls`, `template`, and each other searcher in
/// the space of all mappings.
const std::vector<MappingMethod>& mapping_methods();

struct MappingSearch {
  std::string method = "ours";
  std::string choices = "all";  ///< or `one`: that which HASCO's released matcher finds
  int trials = 500;
  double seconds = search::kInvalid;  ///< no more batches after that
  uint64_t seed = 0;
};

/// The best mapping found; `predicted` counts the trials. Nothing: none that was tried fits, or the
/// unit cannot play the layer. errors: Usage (no such method), Unsupported (no XGBoost in this
/// build).
Result<std::optional<cost::SpatialBest>> find_mapping(const spatial::Design& design,
                                                      const cost::SpatialLayer& layer,
                                                      const MappingSearch& search);

}  // namespace tilewright::tune
