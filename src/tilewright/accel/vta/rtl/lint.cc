// Verilator's lint.
#include <fmt/format.h>

#include <filesystem>

#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::vta {
namespace {

// The only warnings that are waived for the whole file.
constexpr const char* kWaived[] = {
    "-Wno-DECLFILENAME",  // all modules are in one file
    "-Wno-UNUSEDSIGNAL",  // instruction words are wider than what one module reads, and address
                          // arithmetic is done in 32 bits
};
constexpr double kLimitSeconds = 300;

}  // namespace

Status lint(const Config& config) {
  TW_TRY_STATUS(rtl_supports(config));
  TW_TRY(checked_version(kVerilator));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  TW_TRY_STATUS(write_file(folder.path() + "/vta.v", verilog(config)));
  std::vector<std::string> argv = {"verilator", "--lint-only",        "-Wall",    "--top-module",
                                   "vta",       "--default-language", "1364-2005"};
  argv.insert(argv.end(), std::begin(kWaived), std::end(kWaived));
  argv.push_back("vta.v");
  const ToolResult result = TW_TRY(run_tool(argv, {folder.path(), kLimitSeconds}));
  if (result.status == 0 && result.output.find("%Warning") == std::string::npos) return {};
  return fail(ErrorKind::Invalid, "the Verilog is not lint clean", result.output.substr(0, 4000));
}

}  // namespace tilewright::vta
