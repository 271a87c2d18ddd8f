// External tools by version: one that is too old is refused before it is used.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright {

/// A tool that this project runs, and the oldest version of it that will do.
struct ToolNeed {
  std::string name;
  std::vector<std::string> ask;  ///< arguments that make it print its version
  std::string least;             ///< `5.0`
};
extern const ToolNeed kVerilator, kIcarus, kYosys;

/// The first `N.N...` of a text; empty if there is none.
std::string version_in(std::string_view text);
/// Whether version `found` is `least` or newer, number by number.
bool at_least(std::string_view found, std::string_view least);

/// The version of a tool that is there, answers in time and is new enough. On a busy machine a tool
/// that is a script around a program of many megabytes took more than 10 s to answer.
/// errors: Tool, with what was found and what is needed.
Result<std::string> checked_version(const ToolNeed& tool, double limit_seconds = 60);

}  // namespace tilewright
