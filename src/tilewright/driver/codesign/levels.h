// What higher levels of fidelity say of the designs of a search.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/driver/codesign/search_run.h"

namespace tilewright::driver {

struct Fidelity {
  codesign::Level level;
  size_t count = 0;  ///< designs of the front that it looks at
};
/// Levels above the model, each of which looks at designs that the one before has judged:
/// `tsim:8,synth:4`. errors: Usage, with the levels there are.
Result<std::vector<Fidelity>> parse_fidelity(const std::string& text);
/// errors: those of `Level::accepts`.
Status check_levels(const std::vector<Fidelity>& levels, const codesign::Technology& technology);
/// 0: the model; each level above it has a higher rank.
size_t rank_of(const std::string& level);

/// Rows of the model alone, in their order, as the search has to see them: where a higher level has
/// no result, or breaks a limit that the model meets, it has the last word.
std::vector<codesign::StudyRow> model_rows(const std::vector<codesign::StudyRow>& rows);
/// The others.
std::vector<codesign::StudyRow> checked_rows(const std::vector<codesign::StudyRow>& rows);
/// Designs that the model takes for feasible and a higher level does not.
size_t broken(const std::vector<codesign::StudyRow>& rows);

/// A design, and which of the levels has to judge it.
struct ToCheck {
  FrontPoint design;
  size_t level = 0;
};
/// Of the lowest level that lacks something: of the best `count` designs of the front of the level
/// below, nearest to the knee first, the first without a row of that level.
std::optional<ToCheck> next_to_check(const std::vector<codesign::StudyRow>& rows,
                                     const std::vector<Fidelity>& levels);

/// A line for each level: `tsim of 8 designs: latency +1.2 % against the model in the mean, +3.4 %
/// at most; 1 of them infeasible there`.
std::vector<std::string> level_summaries(const SearchResult& result,
                                         const std::vector<std::string>& objectives);

}  // namespace tilewright::driver
