#include "tilewright/tune/spatial/methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/names.h"
#include "tilewright/cost/boosted_trees.h"
#include "tilewright/search/searchers.h"

namespace tilewright::tune {
namespace {

using Made = Result<std::unique_ptr<search::Searcher>>;

/// TVM's explorer over the decisions: there are no loop programs.
Made over_decisions(const SpatialSpace& space, SpatialJudge&, uint64_t seed) {
  cost::BoostedTreesOptions trees;
  trees.seed = seed;
  return search::model_searcher(space.space(), seed, TW_TRY(cost::boosted_trees(trees)));
}

Made by_bound(const SpatialSpace& space, SpatialJudge& judge, uint64_t seed) {
  search::PriorGuidedOptions options;
  options.prior = [&judge](const search::Point& point) { return judge.bound(point); };
  options.features = [&judge](const search::Point& point) {
    // Bounds and terms are of very different size; what is learned is a logarithm.
    std::vector<double> terms = judge.terms(point);
    for (double& term : terms) term = std::log2(1 + term);
    return terms;
  };
  return search::prior_searcher(space.space(), seed, options);
}

/// source: HASCO paper, section VI. It names no numbers: 64 random mappings as in the released
/// code, of which the best eight go on.
Made top_k(const SpatialSpace& space, SpatialJudge&, uint64_t seed) {
  search::QMethodOptions options;
  options.cheapest_starts = true;
  options.starts = 8;
  options.warm_up = 64;
  return search::q_searcher(space.space(), seed, options);
}

Made q_released(const SpatialSpace& space, SpatialJudge&, uint64_t seed) {
  search::QMethodOptions options;
  options.form = search::QMethodOptions::Form::Released;
  return search::q_searcher(space.space(), seed, options);
}

struct SpatialSearcher {
  const char* name;
  Made (*make)(const SpatialSpace& space, SpatialJudge& judge, uint64_t seed);
};
constexpr SpatialSearcher kSearchers[] = {
    {"random",
     [](const SpatialSpace& s, SpatialJudge&, uint64_t seed) -> Made {
       return search::random_searcher(s.space(), seed);
     }},
    {"annealing",
     [](const SpatialSpace& s, SpatialJudge&, uint64_t seed) -> Made {
       return search::annealing_searcher(s.space(), seed);
     }},
    {"p",
     [](const SpatialSpace& s, SpatialJudge&, uint64_t seed) -> Made {
       return search::p_searcher(s.space(), seed);
     }},
    {"q",
     [](const SpatialSpace& s, SpatialJudge&, uint64_t seed) -> Made {
       return search::q_searcher(s.space(), seed);
     }},
    {"q-released", q_released},
    {"evolution",
     [](const SpatialSpace& s, SpatialJudge&, uint64_t seed) -> Made {
       return search::evolution_searcher(s.space(), seed);
     }},
    {"xgb", over_decisions},
    {"prior", by_bound},
    {"hasco", top_k},
};

/// The method of this name, or the nearest names.
Result<MappingMethod> method_named(const std::string& name) {
  std::vector<std::string> known;
  for (const MappingMethod& method : mapping_methods()) {
    if (method.name == name) return method;
    known.emplace_back(method.name);
  }
  return fail(ErrorKind::Usage, fmt::format("there is no mapper '{}'", name),
              fmt::format("the mappers are {}", fmt::join(known, ", ")), did_you_mean(name, known));
}

}  // namespace

std::vector<std::string> spatial_searchers() {
  std::vector<std::string> names;
  for (const SpatialSearcher& searcher : kSearchers) names.emplace_back(searcher.name);
  return names;
}

Made spatial_searcher(const std::string& name, const SpatialSpace& space, SpatialJudge& judge,
                      uint64_t seed) {
  for (const SpatialSearcher& known : kSearchers)
    if (known.name == name) return known.make(space, judge, seed);
  return fail(ErrorKind::Usage, fmt::format("there is no searcher '{}'", name),
              fmt::format("the searchers are {}", fmt::join(spatial_searchers(), ", ")),
              did_you_mean(name, spatial_searchers()));
}

const std::vector<MappingMethod>& mapping_methods() {
  static const std::vector<MappingMethod> methods = [] {
    std::vector<MappingMethod> all = {
        {"ours", "", SpatialForm::All, false, "the mapper, all tiles in order of their bounds"},
        {"hasco", "hasco", SpatialForm::Factors, false, "HASCO's: the best trials, Q-learning"},
        {"hasco-calls", "hasco", SpatialForm::Factors, true,
         "the same, a COMPUTE covers the intrinsic's loops only"},
        {"template", "xgb", SpatialForm::Template, false, "tile sizes of one template, by xgb"}};
    for (const SpatialSearcher& searcher : kSearchers)
      if (std::string_view(searcher.name) != "hasco")
        all.push_back({searcher.name, searcher.name, SpatialForm::All, false, "all mappings"});
    return all;
  }();
  return methods;
}

Result<std::optional<cost::SpatialBest>> find_mapping(const spatial::Design& design,
                                                      const cost::SpatialLayer& layer,
                                                      const MappingSearch& search) {
  const MappingMethod method = TW_TRY(method_named(search.method));
  const bool one_choice = search.choices == "one";
  if (*method.searcher == 0) {
    cost::SpatialMapperOptions options;
    const auto choices = cost::choices(design, layer);
    if (one_choice && !choices.empty()) options.choices = {plain_choice(choices)};
    return cost::best_mapping(design, layer, options);
  }
  const auto space = SpatialSpace::create(
      design, layer,
      {.form = method.form, .one_choice = one_choice, .calls_only = method.calls_only});
  if (!space) return std::nullopt;
  SpatialJudge judge(**space);
  const auto searcher = TW_TRY(spatial_searcher(method.searcher, **space, judge, search.seed));
  search::Budget budget;
  budget.trials = search.trials;
  budget.seconds = search.seconds;
  const auto evaluate = [&](const std::vector<search::Point>& points) {
    std::vector<search::Evaluation> outcomes;
    for (const search::Point& point : points) outcomes.push_back(judge.judge(point));
    return outcomes;
  };
  const search::RunResult run = search::run(*searcher, evaluate, budget);
  const search::Trial* best = searcher->history().best();
  if (best == nullptr) return std::nullopt;
  cost::SpatialBest found;
  found.mapping = (*space)->mapping(best->point);
  found.cost = cost::evaluate(design, layer, found.mapping);
  found.predicted = static_cast<int64_t>(run.trials.size());
  return found;
}

}  // namespace tilewright::tune
