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
/// `tsim:8`. errors: Usage, with the levels there are.
Result<Fidelity> parse_fidelity(const std::string& text);

/// Rows of the model alone, in their order, as the search has to see them: where a higher level has
/// no result, or breaks a limit that the model meets, it has the last word.
std::vector<codesign::StudyRow> model_rows(const std::vector<codesign::StudyRow>& rows);
/// The others.
std::vector<codesign::StudyRow> checked_rows(const std::vector<codesign::StudyRow>& rows);
/// Designs that the model takes for feasible and a higher level does not.
size_t broken(const std::vector<codesign::StudyRow>& rows);

/// Of the best `count` designs of the front, nearest to the knee first, the first without a row of
/// that level.
std::optional<FrontPoint> next_to_check(const std::vector<codesign::StudyRow>& rows,
                                        const Fidelity& fidelity);

/// `tsim of 8 designs: latency 1.2 % above the model in the mean, 3.4 % at most; 1 breaks a limit`.
std::string level_summary(const SearchResult& result, const std::string& objective);

}  // namespace tilewright::driver
