// The environment variables of this project: the one place that knows their names and what they
// take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright {

struct Variable {
  enum class Takes { Text, Count, Switch };
  const char* name;
  Takes takes;  ///< a text, a whole number from 1 to 1024, or `on` and `off`
};
/// source: the table in docs/cli.md, which says what each is for.
const std::vector<Variable>& environment_variables();

/// The value of a variable; absent if it is not set, or set to nothing.
std::optional<std::string> environment(const std::string& name);

/// Whether a variable that takes `on` or `off` (in any case) is `off`.
bool environment_off(const std::string& name);

/// Variables whose values they do not take. errors: Usage, with all of them.
Status check_environment();

/// Names among `set` that are not in the table but near to one that is: `TILEWRIGHT_THREAD`.
/// Each with the name that was meant.
std::vector<std::pair<std::string, std::string>> misspelt_variables(
    const std::vector<std::string>& set);

}  // namespace tilewright
