#include "tilewright/driver/verbs/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "tilewright/accel/fpga/rtl/ice40.h"
#include "tilewright/base/json.h"
#include "tilewright/base/process.h"
#include "tilewright/base/tool_version.h"
#include "tilewright/codegen/gpu/sass.h"
#include "tilewright/compile/backends.h"

namespace tilewright::driver {
namespace {

ToolFinding versioned(const ToolNeed& tool, const std::string& needed_for) {
  const Result<std::string> version = checked_version(tool);
  if (version) return {tool.name, true, fmt::format("{}, {}", *version, find_program(tool.name))};
  return {
      tool.name, false,
      fmt::format("{}: {} (only for {})", version.error().what, version.error().why, needed_for)};
}

/// The first of `programs` that is there.
ToolFinding first_of(const std::string& name, const std::vector<std::string>& programs,
                     const std::string& needed_for) {
  for (const std::string& program : programs)
    if (const std::string path = find_program(program); !path.empty()) return {name, true, path};
  return {
      name, false,
      fmt::format("none of {} is on PATH (only for {})", fmt::join(programs, ", "), needed_for)};
}

}  // namespace

std::vector<ToolFinding> find_tools() {
  std::vector<ToolFinding> findings = {
      first_of("linker", {"cc", "gcc", "clang-19", "clang", "ld.lld-19", "ld.lld", "ld.mold", "ld"},
               "compiling for this machine"),
      first_of("aarch64 linker", {"ld.lld-19", "ld.lld", "ld.mold"}, "--target aarch64"),
      first_of("qemu", {"qemu-aarch64", "qemu-aarch64-static"}, "trying code for AArch64")};
  for (const compile::Backend* backend : compile::backends())
    for (const compile::DeviceTool& need : backend->runtime().tools())
      findings.push_back(versioned(need.tool, need.needed_for));
  findings.push_back(versioned(fpga::kNextpnrIce40, "synth --bitstream"));
  findings.push_back(first_of(fpga::kIcepack, {fpga::kIcepack}, "synth --bitstream"));
  findings.push_back(first_of("v++", {"v++"}, "build.sh of hls"));
  findings.push_back(first_of("vivado", {"vivado"}, "build.sh of rtl"));
  const Result<std::string> nvdisasm = codegen::find_nvdisasm();
  findings.push_back({"nvdisasm", nvdisasm.has_value(),
                      nvdisasm ? *nvdisasm : nvdisasm.error().why + " (only for explain --sass)"});
  return findings;
}

std::vector<compile::DeviceState> device_states(const compile::Backend& backend) {
  if (!backend.runtime().probed_apart()) return backend.runtime().states();
  const std::string name(backend.name());
  constexpr double kDriverSeconds = 60;
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return backend.runtime().states();
  const Result<ToolResult> child = run_tool({program, "-q", "probe", name}, {".", kDriverSeconds});
  if (!child) return {{name, child.error().what, ""}};
  if (child->timed_out)
    return {{name, fmt::format("its driver did not answer in {} s", kDriverSeconds), ""}};
  // Drivers print what they like before and behind it.
  const size_t begin = child->output.find("{\"schema\"");
  const nlohmann::json json =
      begin == std::string::npos
          ? nlohmann::json()
          : parse_json(child->output.substr(begin, child->output.find('\n', begin) - begin),
                       std::nothrow);
  if (!json.is_object())
    return {{name,
             fmt::format("its driver ended the program that asked it (status {}): {}",
                         child->status, child->output.substr(0, child->output.find('\n'))),
             ""}};
  std::vector<compile::DeviceState> rows;
  for (const nlohmann::json& row : json.value("rows", nlohmann::json::array()))
    rows.push_back({row.at(0), row.at(1), row.at(2)});
  return rows;
}

}  // namespace tilewright::driver
