// Names: finding the one a user meant.
#pragma once

#include <string>
#include <vector>

namespace tilewright {

/// The candidate with the smallest edit distance to `name`; empty if there are none.
std::string nearest(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace tilewright
