#include "tilewright/driver/fleet/child.h"

#include <unistd.h>

#include <filesystem>

#include "tilewright/compile/devices.h"
#include "tilewright/driver/fleet/runner_device.h"
#include "tilewright/fleet/measure/confined_worker.h"
#include "tilewright/hw/gpu_target.h"

namespace tilewright::driver {
namespace {

constexpr int64_t kMemory = int64_t{8} << 30, kFile = int64_t{2} << 30;
constexpr int kProcesses = 256;  ///< threads count too
constexpr double kForEver = 1e9;

/// This program, by a path that is valid in the sandbox too.
std::string this_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : path.string();
}

/// The small runner, where it lies beside this program; else empty.
std::string small_runner() {
  const std::filesystem::path folder = std::filesystem::path(this_program()).parent_path();
  const std::string runner = (folder / "tilewright-runner").string();
  return ::access(runner.c_str(), X_OK) == 0 ? runner : "";
}

/// Packages for processors are run by the small runner: it loads in a tenth of the time.
std::vector<std::string> command_of(const fleet::Offer& offer, const std::string& folder) {
  const std::string runner = offer.device == "cpu" ? small_runner() : "";
  if (!runner.empty()) return {runner, folder};
  return {this_program(), "run-folder", folder, "--quiet"};
}

/// What the words of a command name.
void add_named_files(const std::vector<std::string>& words, std::vector<std::string>& files) {
  for (const std::string& word : words)
    if (word.starts_with("/") && std::filesystem::exists(word)) files.push_back(word);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

/// Files through which drivers reach GPUs; what their libraries read goes to `read_only`.
std::vector<std::string> gpu_nodes(std::vector<std::string>& read_only) {
  std::vector<std::string> nodes;
  std::error_code error;
  for (const char* folder : {"/dev", "/dev/dri"})
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("nvidia") || name.starts_with("renderD") || name == "kfd")
        nodes.push_back(entry.path());
    }
  if (std::filesystem::exists("/etc/OpenCL", error)) read_only.emplace_back("/etc/OpenCL");
  return nodes;
}

}  // namespace

bool program_is_there() { return ::access(this_program().c_str(), X_OK) == 0; }

Result<ChildRunner> ChildRunner::create(const std::string& sandbox) {
  if (sandbox == "auto") return ChildRunner(TW_TRY(fleet::best_sandbox()));
  const fleet::SandboxKind kind = TW_TRY(fleet::parse_sandbox(sandbox));
  TW_TRY_STATUS(fleet::check_sandbox(kind));
  return ChildRunner(kind);
}

std::string ChildRunner::sandbox() const { return fleet::name(kind_); }

Result<ToolResult> ChildRunner::run(const fleet::Offer& offer, const std::string& folder,
                                    double limit_s, const std::function<bool()>& stop) const {
  fleet::Confined child;
  child.argv = command_of(offer, folder);
  child.read_only = {std::filesystem::path(this_program()).parent_path().string()};
  const auto gpu = hw::find_gpu_target(compile::backend_name(offer.device));
  if (gpu) child.devices = gpu_nodes(child.read_only);
  child.writable_folder = folder;
  child.limit_seconds = limit_s;
  child.memory_bytes = kMemory;
  child.file_bytes = kFile;
  child.processes = kProcesses;
  // PoCL starts a linker; other packages have threads only.
  child.starts_processes = gpu && gpu->language == hw::GpuLanguage::OpenCl;
  return fleet::run_confined(kind_, child, stop);
}

/// What serves packages that come through its stdin: `CMD --serve -`.
fleet::OpenChild ChildRunner::runner(const std::string& device) const {
  fleet::Confined child;
  child.argv = runner_command(device);
  fleet::SandboxKind kind = kind_;
  if (leads_elsewhere(child.argv)) {
    kind = fleet::SandboxKind::None;  // the worker's user, with all that is his
    child.environment = own_environment();
  } else {
    child.read_only = {std::filesystem::path(this_program()).parent_path().string()};
    add_named_files(child.argv, child.read_only);
  }
  child.argv.insert(child.argv.end(), {"--serve", "-"});
  child.limit_seconds = kForEver;  // each run has a limit of its own
  child.memory_bytes = kMemory;
  child.file_bytes = kFile;
  child.processes = kProcesses;
  child.starts_processes = true;  // emulators do, and ssh may go through a proxy
  return [kind, child](int input, int answers, const fleet::ConfinedProcess::Prepare& prepare) {
    fleet::Confined one = child;
    one.input = input;
    one.answers = answers;
    return fleet::ConfinedProcess::start(kind, std::move(one), prepare);
  };
}

fleet::PackageOpener ChildRunner::opening(const fleet::Offer& offer) const {
  if (is_runner(offer.device)) return {runner(offer.device), true};
  const std::string runner = offer.device == "cpu" ? small_runner() : "";
  if (runner.empty()) return {};
  fleet::Confined child;
  child.argv = {runner, "--serve", "."};
  child.limit_seconds = kForEver;  // each run has a limit of its own
  child.memory_bytes = kMemory;
  child.file_bytes = kFile;
  child.processes = kProcesses;
  return {[kind = kind_, child](int socket, int, const fleet::ConfinedProcess::Prepare& prepare) {
    fleet::Confined one = child;
    one.descriptors = {socket};
    return fleet::ConfinedProcess::start(kind, std::move(one), prepare);
  }};
}

measure::StartWorker ChildRunner::measuring(const fleet::Offer& offer) const {
  fleet::Confined child;
  child.read_only = {std::filesystem::path(this_program()).parent_path().string()};
  child.starts_processes = is_runner(offer.device);  // candidates for it are linked
  if (const auto gpu = hw::find_gpu_target(compile::backend_name(offer.device))) {
    child.devices = gpu_nodes(child.read_only);
    child.starts_processes = gpu->language == hw::GpuLanguage::OpenCl;  // PoCL starts a linker
  }
  child.memory_bytes = kMemory;
  child.file_bytes = kFile;
  child.processes = kProcesses;
  return fleet::confined_workers(
      kind_, child, is_runner(offer.device) ? runner(offer.device) : fleet::OpenChild());
}

}  // namespace tilewright::driver
