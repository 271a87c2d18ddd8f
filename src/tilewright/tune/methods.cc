#include "tilewright/tune/methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "tilewright/base/names.h"
#include "tilewright/cost/boosted_trees.h"
#include "tilewright/cost/loop_features.h"
#include "tilewright/cost/loop_tree_model.h"
#include "tilewright/search/searchers.h"

namespace tilewright::tune {
namespace {

using Made = Result<std::unique_ptr<search::Searcher>>;
using Known = std::vector<KnownProgram>;
using Make = Made (*)(const ScheduleSpace& space, const measure::Task& task, uint64_t seed,
                      const Known& known);

Made ours(const ScheduleSpace& space, const measure::Task&, uint64_t seed, const Known&) {
  search::PriorGuidedOptions options;
  options.prior = [&space](const search::Point& point) { return space.prior(point); };
  options.features = [&space](const search::Point& point) { return space.terms(point); };
  options.first = 16;
  return search::prior_searcher(space.space(), seed, options);
}

Made random(const ScheduleSpace& space, const measure::Task&, uint64_t seed, const Known&) {
  return search::random_searcher(space.space(), seed);
}

Made annealing(const ScheduleSpace& space, const measure::Task&, uint64_t seed, const Known&) {
  return search::annealing_searcher(space.space(), seed);
}

Made p_method(const ScheduleSpace& space, const measure::Task&, uint64_t seed, const Known&) {
  return search::p_searcher(space.space(), seed);
}

Made q_method(const ScheduleSpace& space, const measure::Task&, uint64_t seed, const Known&) {
  return search::q_searcher(space.space(), seed);
}

Made q_released(const ScheduleSpace& space, const measure::Task&, uint64_t seed, const Known&) {
  search::QMethodOptions options;
  options.form = search::QMethodOptions::Form::Released;
  return search::q_searcher(space.space(), seed, options);
}

Made evolution(const ScheduleSpace& space, const measure::Task&, uint64_t seed, const Known&) {
  return search::evolution_searcher(space.space(), seed);
}

/// For a model that sees the loop program of a point.
search::ModelGuidedOptions over_programs(const ScheduleSpace& space, const measure::Task& task,
                                         const Known& known_programs,
                                         std::vector<double> (*features_of)(const Func&)) {
  search::ModelGuidedOptions options;
  // A point's program takes milliseconds to make: fewer and shorter chains than TVM's.
  options.chains = 32, options.steps = 8;
  const auto known = std::make_shared<std::map<search::Point, std::vector<double>>>();
  options.features = [&space, known, func = task.func, features_of](const search::Point& point) {
    std::vector<double>& features = (*known)[point];
    if (!features.empty()) return features;
    const Result<schedule::Trace> trace = space.trace(point);
    const Result<Func> scheduled = trace ? schedule::replay(func, *trace) : Result<Func>(func);
    return features = features_of(scheduled ? *scheduled : func);
  };
  for (const KnownProgram& program : known_programs) {
    search::KnownSamples samples;
    for (const auto& [trace, cost] : program.measured)
      if (const Result<Func> scheduled = schedule::replay(program.func, trace)) {
        samples.features.push_back(features_of(*scheduled));
        samples.costs.push_back(cost);
      }
    options.known.push_back(std::move(samples));
  }
  return options;
}

/// TVM's: gradient-boosted trees.
Made boosted_trees(const ScheduleSpace& space, const measure::Task& task, uint64_t seed,
                   const Known& known) {
  cost::BoostedTreesOptions trees;
  trees.seed = seed;
  std::unique_ptr<search::Model> model = TW_TRY(cost::boosted_trees(trees));
  return search::model_searcher(space.space(), seed, std::move(model),
                                over_programs(space, task, known, [](const Func& func) {
                                  return cost::loop_features(func);
                                }));
}

/// TVM's alternative: a network on the loop tree.
Made loop_tree(const ScheduleSpace& space, const measure::Task& task, uint64_t seed,
               const Known& known) {
  return search::model_searcher(
      space.space(), seed, cost::loop_tree_model(),
      over_programs(space, task, known, [](const Func& func) { return cost::loop_tree(func); }));
}

struct Method {
  const char* name;
  Make make;
  bool learns_programs = false;
};
constexpr Method kMethods[] = {
    {"ours", ours},
    {"random", random},
    {"annealing", annealing},
    {"p", p_method},
    {"q", q_method},
    {"q-released", q_released},
    {"evolution", evolution},
    {"xgb", boosted_trees, true},
    {"tree", loop_tree, true},
};

}  // namespace

std::vector<std::string> search_methods() {
  std::vector<std::string> names;
  for (const Method& method : kMethods) names.push_back(method.name);
  return names;
}

bool learns_programs(const std::string& method) {
  for (const Method& one : kMethods)
    if (one.name == method) return one.learns_programs;
  return false;
}

Made make_searcher(const std::string& method, const ScheduleSpace& space, const measure::Task& task,
                   uint64_t seed, const std::vector<KnownProgram>& known) {
  for (const Method& one : kMethods)
    if (one.name == method) return one.make(space, task, seed, known);
  return fail(ErrorKind::Usage, fmt::format("there is no method '{}'", method),
              fmt::format("the methods are {}", fmt::join(search_methods(), ", ")),
              did_you_mean(method, search_methods()));
}

}  // namespace tilewright::tune
