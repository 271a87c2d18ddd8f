// What to tell people whose model has an operator that is not supported.
#pragma once

#include <string>

namespace tilewright::graph {

struct Advice {
  std::string why, fix;
};

/// Why there is no such operator, and what the model can have in its place.
Advice advice_for(const std::string& domain, const std::string& op);

}  // namespace tilewright::graph
