#include "tilewright/runtime/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/names.h"

namespace tilewright::runtime {
Error unknown_name(const std::string& what, const std::string& wanted,
                   const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)));
  Error error{ErrorKind::Invalid, fmt::format("there is no {} '{}'", what, wanted), {}, {}, {}, {}};
  error.why = names.empty() ? fmt::format("the program has no {}s", what)
                            : fmt::format("the {}s are: {}{}", what, fmt::join(shown, ", "),
                                          names.size() > kShown ? ", ..." : "");
  error.fix = did_you_mean(wanted, names);
  return error;
}

}  // namespace tilewright::runtime
