// The error for a name that none of the built-in ones is, where a path of a file would do as well.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "tilewright/base/names.h"
#include "tilewright/base/result.h"

namespace tilewright {

/// `what`, with the names that there are and, if none is near, how a file is named instead.
inline tl::unexpected<Error> unknown_name(std::string what, const std::string& name,
                                          const std::vector<std::string>& builtin) {
  const std::string near = did_you_mean(name, builtin);
  return fail(ErrorKind::Usage, std::move(what),
              fmt::format("built in: {}", fmt::join(builtin, ", ")),
              near.empty() ? fmt::format("a file needs its path, as in ./{}.toml", name) : near);
}

}  // namespace tilewright
