// Contests as a table for terminals, as JSON, and as a page with curves that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "contest.h"

namespace tilewright::bench {

/// One line per method: quality at the end, trials and seconds to 95 % of the oracle (unreached
/// counts as the budget, and says so), against the method named `ours`.
std::string table(const Contest& contest);
std::string to_json(const std::vector<Contest>& contests);
std::string to_html(const std::vector<Contest>& contests);

}  // namespace tilewright::bench
