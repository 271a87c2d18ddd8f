#include "tilewright/driver/verbs/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tilewright/base/process.h"
#include "tilewright/base/tool_version.h"
#include "tilewright/codegen/gpu/sass.h"
#include "tilewright/runtime/gpu/device.h"

namespace tilewright::driver {
namespace {

/// A program with one kernel that does nothing.
runtime::GpuProgram gpu_probe(const std::string& language) {
  runtime::GpuProgram program;
  program.language = language;
  program.source = "__kernel void probe() {}";
  program.arch = "sm_50";
  program.ptx = ".version 5.0\n.target sm_50\n.address_size 64\n.visible .entry probe() { ret; }\n";
  program.kernels = {{"probe", {1, 1, 1}, {1, 1, 1}}};
  program.calls = {{0, "probe", {}, {}}};
  return program;
}

/// Runs it on a GPU; empty if it worked.
std::string try_gpu(const runtime::GpuDeviceInfo& info) {
  const auto run = [&]() -> Status {
    const auto device = TW_TRY(runtime::open_gpu(info.id));
    const auto program = std::make_shared<const runtime::GpuProgram>(gpu_probe(info.language));
    return TW_TRY(device->load(program, {}))->execute();
  };
  const Status status = run();
  return status ? "" : status.error().what + ": " + status.error().why;
}

Finding versioned(const ToolNeed& tool, const std::string& needed_for) {
  const Result<std::string> version = checked_version(tool);
  if (version) return {tool.name, true, fmt::format("{}, {}", *version, find_program(tool.name))};
  return {
      tool.name, false,
      fmt::format("{}: {} (only for {})", version.error().what, version.error().why, needed_for)};
}

/// The first of `programs` that is there.
Finding first_of(const std::string& name, const std::vector<std::string>& programs,
                 const std::string& needed_for) {
  for (const std::string& program : programs)
    if (const std::string path = find_program(program); !path.empty()) return {name, true, path};
  return {
      name, false,
      fmt::format("none of {} is on PATH (only for {})", fmt::join(programs, ", "), needed_for)};
}

}  // namespace

std::vector<Finding> find_tools() {
  std::vector<Finding> findings = {
      first_of("linker", {"cc", "gcc", "clang-19", "clang", "ld.lld-19", "ld.lld", "ld.mold", "ld"},
               "compiling for this machine"),
      first_of("aarch64 linker", {"ld.lld-19", "ld.lld", "ld.mold"}, "--target aarch64"),
      first_of("qemu", {"qemu-aarch64", "qemu-aarch64-static"}, "trying code for AArch64"),
      versioned(kVerilator, "vta:rtl and rtl --lint"),
      versioned(kIcarus, "rtl --bench"),
      versioned(kYosys, "synth")};
  const Result<std::string> nvdisasm = codegen::find_nvdisasm();
  findings.push_back({"nvdisasm", nvdisasm.has_value(),
                      nvdisasm ? *nvdisasm : nvdisasm.error().why + " (only for explain --sass)"});
  return findings;
}

std::vector<DeviceRow> gpu_rows_here(const std::string& language) {
  std::vector<std::string> problems;
  std::vector<DeviceRow> rows;
  for (const runtime::GpuDeviceInfo& info : runtime::list_gpus(&problems))
    if (info.language == language)
      rows.push_back({info.id, try_gpu(info),
                      fmt::format("{}, {}, {} units, {} GiB", info.name, info.arch, info.units,
                                  info.memory_bytes >> 30)});
  for (const std::string& problem : problems)
    if (problem.starts_with(language + ": "))
      rows.push_back({language, problem.substr(language.size() + 2), ""});
  return rows;
}

std::vector<DeviceRow> gpu_rows(const std::string& language) {
  constexpr double kSeconds = 60;
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return gpu_rows_here(language);
  const Result<ToolResult> child = run_tool({program, "-q", "probe", language}, {".", kSeconds});
  if (!child) return {{language, child.error().what, ""}};
  if (child->timed_out)
    return {{language, fmt::format("its driver did not answer in {} s", kSeconds), ""}};
  // Drivers print what they like before and behind it.
  const size_t begin = child->output.find("{\"schema\"");
  const nlohmann::json json =
      begin == std::string::npos
          ? nlohmann::json()
          : nlohmann::json::parse(
                child->output.substr(begin, child->output.find('\n', begin) - begin), nullptr,
                false);
  if (!json.is_object())
    return {{language,
             fmt::format("its driver ended the program that asked it (status {}): {}",
                         child->status, child->output.substr(0, child->output.find('\n'))),
             ""}};
  std::vector<DeviceRow> rows;
  for (const nlohmann::json& row : json.value("rows", nlohmann::json::array()))
    rows.push_back({row.at(0), row.at(1), row.at(2)});
  return rows;
}

}  // namespace tilewright::driver
