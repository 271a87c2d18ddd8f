#include "tilewright/accel/common/rtl/lint.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::accel {
namespace {

// The only warnings that are waived for the whole file.
constexpr const char* kWaived[] = {
    "-Wno-DECLFILENAME",  // all modules are in one file
    "-Wno-UNUSEDSIGNAL",  // instruction words are wider than what one module reads, and address
                          // arithmetic is done in 32 bits
};
constexpr double kLintSeconds = 300;

}  // namespace

Status lint_clean(const std::string& top, const std::string& verilog) {
  TW_TRY(checked_version(kVerilator));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  const std::string file = top + ".v";
  TW_TRY_STATUS(write_file(folder.path() + "/" + file, verilog));
  std::vector<std::string> argv = {"verilator", "--lint-only",        "-Wall",    "--top-module",
                                   top,         "--default-language", "1364-2005"};
  argv.insert(argv.end(), std::begin(kWaived), std::end(kWaived));
  argv.push_back(file);
  const ToolResult result = TW_TRY(run_tool(argv, {folder.path(), kLintSeconds}));
  if (result.status == 0 && result.output.find("%Warning") == std::string::npos) return {};
  return fail(ErrorKind::Invalid, "the Verilog is not lint clean", result.output.substr(0, 4000));
}

}  // namespace tilewright::accel
