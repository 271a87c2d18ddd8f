// Ways to search schedules, by the names that people type.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/search/searcher.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// `ours`, `random`, `annealing`, `p`, `q`, `q-released`, `evolution`, `xgb`, `tree`
std::vector<std::string> search_methods();

/// A program like the one that is searched, and schedules of it that were measured.
struct KnownProgram {
  std::string name;  ///< for people
  Func func;
  std::vector<std::pair<schedule::Trace, double>> measured;  ///< with costs, in one unit
};

/// Whether a method learns what programs cost, so that known ones help it.
bool learns_programs(const std::string& method);

/// A searcher of `space`, which must outlive it, as must the task. `known`: what a method that
/// learns begins with; others do not look at it. errors: Usage (no such method,
/// with the nearest), Unsupported (this build lacks what it needs).
Result<std::unique_ptr<search::Searcher>> make_searcher(
    const std::string& method, const ScheduleSpace& space, const measure::Task& task, uint64_t seed,
    const std::vector<KnownProgram>& known = {});

}  // namespace tilewright::tune
