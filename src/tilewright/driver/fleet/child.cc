#include "tilewright/driver/fleet/child.h"

#include <unistd.h>

#include <filesystem>

#include "tilewright/base/names.h"
#include "tilewright/compile/devices.h"
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
  if (offer.device.starts_with("runner:")) {
    std::vector<std::string> argv = split_words(offer.device.substr(7));
    argv.push_back(folder);
    return argv;
  }
  const std::string runner = offer.device == "cpu" ? small_runner() : "";
  if (!runner.empty()) return {runner, folder};
  return {this_program(), "run-folder", folder, "--quiet"};
}

/// What the words of a command name.
void add_named_files(const std::vector<std::string>& words, std::vector<std::string>& files) {
  for (std::string word : words) {
    if (word.starts_with("runner:")) word.erase(0, 7);
    if (word.starts_with("/") && std::filesystem::exists(word)) files.push_back(word);
  }
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
  add_named_files(child.argv, child.read_only);
  std::erase(child.read_only, folder);
  const auto gpu = hw::find_gpu_target(compile::backend_name(offer.device));
  if (gpu) child.devices = gpu_nodes(child.read_only);
  child.writable_folder = folder;
  child.limit_seconds = limit_s;
  child.memory_bytes = kMemory;
  child.file_bytes = kFile;
  child.processes = kProcesses;
  // qemu and the like start programs, and PoCL a linker; other packages have threads only.
  child.starts_processes =
      offer.device.starts_with("runner:") || (gpu && gpu->language == hw::GpuLanguage::OpenCl);
  return fleet::run_confined(kind_, child, stop);
}

fleet::OpenChild ChildRunner::opening(const fleet::Offer& offer) const {
  const std::string runner = offer.device == "cpu" ? small_runner() : "";
  if (runner.empty()) return {};
  fleet::Confined child;
  child.argv = {runner, "--serve", "."};
  child.limit_seconds = kForEver;  // each run has a limit of its own
  child.memory_bytes = kMemory;
  child.file_bytes = kFile;
  child.processes = kProcesses;
  return [kind = kind_, child](int descriptor, const fleet::ConfinedProcess::Prepare& prepare) {
    fleet::Confined one = child;
    one.descriptors = {descriptor};
    return fleet::ConfinedProcess::start(kind, std::move(one), prepare);
  };
}

measure::StartWorker ChildRunner::measuring(const fleet::Offer& offer) const {
  fleet::Confined child;
  child.read_only = {std::filesystem::path(this_program()).parent_path().string()};
  // Candidates are compiled there, and run by a runner's command.
  child.starts_processes = offer.device.starts_with("runner:");
  if (child.starts_processes) add_named_files(split_words(offer.device), child.read_only);
  if (const auto gpu = hw::find_gpu_target(compile::backend_name(offer.device))) {
    child.devices = gpu_nodes(child.read_only);
    child.starts_processes = gpu->language == hw::GpuLanguage::OpenCl;  // PoCL starts a linker
  }
  child.memory_bytes = kMemory;
  child.file_bytes = kFile;
  child.processes = kProcesses;
  return fleet::confined_workers(kind_, child);
}

}  // namespace tilewright::driver
