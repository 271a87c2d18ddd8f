#include "tilewright/base/tool_version.h"

#include <fmt/format.h>

#include <cstdlib>

#include "tilewright/base/names.h"
#include "tilewright/base/process.h"

namespace tilewright {
namespace {

/// Takes the number before the next dot off `text`.
long next_number(std::string_view& text) {
  const long value = std::strtol(std::string(text.substr(0, text.find('.'))).c_str(), nullptr, 10);
  text.remove_prefix(std::min(text.size(), text.find('.')));
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

}  // namespace

const ToolNeed kVerilator = {"verilator", {"--version"}, "5.0"};
const ToolNeed kIcarus = {"iverilog", {"-V"}, "11.0"};
const ToolNeed kYosys = {"yosys", {"-V"}, "0.20"};

std::string version_in(std::string_view text) {
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (!is_digit(text[begin])) continue;
    size_t end = begin;
    bool dotted = false;
    while (end < text.size() &&
           (is_digit(text[end]) ||
            (text[end] == '.' && end + 1 < text.size() && is_digit(text[end + 1]))))
      dotted |= text[end++] == '.';
    if (dotted) return std::string(text.substr(begin, end - begin));
    begin = end;
  }
  return "";
}

bool at_least(std::string_view found, std::string_view least) {
  while (!found.empty() || !least.empty()) {
    const long have = next_number(found), want = next_number(least);
    if (have != want) return have > want;
  }
  return true;
}

Result<std::string> checked_version(const ToolNeed& tool, double limit_seconds) {
  std::vector<std::string> argv = {tool.name};
  argv.insert(argv.end(), tool.ask.begin(), tool.ask.end());
  const ToolResult answer = TW_TRY(run_tool(argv, {".", limit_seconds}));
  const std::string place = find_program(tool.name);
  if (answer.timed_out)
    return fail(ErrorKind::Tool,
                fmt::format("'{}' did not tell its version within {} s", tool.name, limit_seconds),
                place + " was stopped", "try again when the machine is less busy");
  const auto useless = [&](const std::string& what, const std::string& why) {
    return fail(ErrorKind::Tool, what,
                fmt::format("{}; {} {} or newer is needed", why, tool.name, tool.least),
                "install a newer one; `tilewright doctor` lists what is found");
  };
  const std::string version = version_in(answer.output);
  if (version.empty())
    return useless(fmt::format("'{}' is broken", tool.name),
                   fmt::format("{} tells no version (exit status {})", place, answer.status));
  if (!at_least(version, tool.least))
    return useless(fmt::format("{} {} is too old", tool.name, version), "found at " + place);
  return version;
}

}  // namespace tilewright
