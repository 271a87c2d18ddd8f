// Command lines that do not parse, said in this program's own words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::driver {

/// What a validator below throws: it knows best what is wrong.
struct Refused {
  Error error;
};

/// Accepts the given words only.
CLI::Validator one_of(const std::string& option, std::vector<std::string> words);
/// Accepts numbers from `low` to `high`.
CLI::Validator in_range(const std::string& option, double low, double high);

/// What is wrong with `words`, the arguments that `app` refused with `error`.
Error usage_error(const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& words);

/// For a node that is none of `names`, those that kernels are called after.
tl::unexpected<Error> unknown_node(const std::string& node, const std::vector<std::string>& names);

}  // namespace tilewright::driver
