// Ways to search schedules, by the names that people type.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/search/searcher.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// `ours`, `random`, `annealing`, `p`, `q`, `q-released`, `evolution`, `xgb`, `tree`
std::vector<std::string> search_methods();

/// A searcher of `space`, which must outlive it, as must the task. errors: Usage (no such method,
/// with the nearest), Unsupported (this build lacks what it needs).
Result<std::unique_ptr<search::Searcher>> make_searcher(const std::string& method,
                                                        const ScheduleSpace& space,
                                                        const measure::Task& task, uint64_t seed);

}  // namespace tilewright::tune
