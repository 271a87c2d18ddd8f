// Command lines that do not parse, said in this program's own words.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace tilewright::driver {

/// What an option throws that refuses its value: it knows best what is wrong, but not by which of
/// its names it was called.
struct Refused {
  const CLI::Option* option;
  std::function<std::string(const std::string& name)> what;
  std::string why = {}, fix = {};
};

/// The error of `refused` with the name that is in `words`, the arguments.
Error refusal(const Refused& refused, const std::vector<std::string>& words);

/// What is wrong with `words`, the arguments that `app` refused with `error`.
Error usage_error(const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& words);

/// For a node that is none of `names`, those that kernels are called after.
tl::unexpected<Error> unknown_node(const std::string& node, const std::vector<std::string>& names);

}  // namespace tilewright::driver
