#include "tilewright/accel/vta/rtl/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "tilewright/base/file.h"

extern char** environ;

namespace tilewright::vta::rtl {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kPackages = {{"verilator", "verilator"},
                                                      {"iverilog", "iverilog"},
                                                      {"vvp", "iverilog"},
                                                      {"yosys", "yosys"},
                                                      {"g++", "g++"}};

bool on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string folder = rest.substr(0, colon);
    if (!folder.empty() && ::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return false;
}

/// Waits for the child; after the limit kills its process group.
ToolResult wait_for(pid_t pid, double limit_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  ToolResult result;
  int status = 0;
  auto pause = std::chrono::milliseconds(1);
  while (::waitpid(pid, &status, result.timed_out ? 0 : WNOHANG) == 0) {
    if (std::chrono::duration<double>(Clock::now() - begin).count() > limit_seconds) {
      result.timed_out = true;
      ::kill(-pid, SIGKILL);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace

Result<ToolResult> run_tool(const std::vector<std::string>& argv, const std::string& folder,
                            double limit_seconds) {
  if (!on_path(argv[0])) {
    const auto package = kPackages.find(fs::path(argv[0]).filename());
    return fail(ErrorKind::Tool, fmt::format("'{}' is not installed", argv[0]), "it is not on PATH",
                package == kPackages.end() ? "install it, or add its folder to PATH"
                                           : fmt::format("apt install {}", package->second));
  }
  const TemporaryFolder scratch =
      TW_TRY(TemporaryFolder::make(fs::temp_directory_path().string(), "tilewright-tool"));
  const std::string log = scratch.path() + "/log";
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return fail(ErrorKind::Tool, fmt::format("'{}' does not start", argv[0]), std::strerror(error));
  ToolResult result = wait_for(pid, limit_seconds);
  result.output = TW_TRY(read_file(log));
  return result;
}

Result<TemporaryFolder> TemporaryFolder::make(const std::string& parent,
                                              const std::string& prefix) {
  std::string path = parent + "/" + prefix + ".XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return fail(ErrorKind::Io, fmt::format("cannot create a folder in '{}'", parent),
                std::strerror(errno));
  return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<std::string> cache_folder() {
  std::string folder;
  if (const char* own = std::getenv("TILEWRIGHT_CACHE_DIR"); own != nullptr && *own != 0)
    folder = own;
  else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != 0)
    folder = std::string(xdg) + "/tilewright";
  else if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0)
    folder = std::string(home) + "/.cache/tilewright";
  else
    folder = fs::temp_directory_path().string() + "/tilewright-cache";
  folder += "/rtl";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorKind::Io, fmt::format("cannot create the cache folder '{}'", folder),
                error.message(), "set TILEWRIGHT_CACHE_DIR to a folder that can be written");
  return fs::absolute(folder).string();
}

}  // namespace tilewright::vta::rtl
