#include "tilewright/base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "tilewright/base/file.h"

extern char** environ;

namespace tilewright {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShown = 2000;  ///< bytes of a failing tool's output in the error

/// The temporary folders of this process.
struct Folders {
  std::mutex lock;
  std::set<std::string> paths;
  bool ended = false;  ///< there will be no more
};

/// Never destroyed: a thread may still ask for it when the process ends.
Folders& folders() {
  static Folders& all = *new Folders;
  return all;
}

/// Removes a folder. Of tools that were killed, those that they had started may still be about to
/// make a file in it: then once more, for a second at most.
void remove_folder(const std::string& path) {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::error_code error;
    fs::remove_all(path, error);
    const bool changes =
        error == std::errc::directory_not_empty || error == std::errc::no_such_file_or_directory;
    if (!changes) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void forget_folder(const std::string& path) {
  const std::lock_guard<std::mutex> guard(folders().lock);
  folders().paths.erase(path);
}

/// Waits for the child; after the limit, or when interrupted, ends its process group.
ToolResult wait_for(pid_t pid, double limit_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  ToolResult result;
  int status = 0;
  struct rusage usage{};
  auto pause = std::chrono::microseconds(200);
  for (;;) {
    const pid_t done = ::wait4(pid, &status, WNOHANG, &usage);
    if (done == pid || (done < 0 && errno != EINTR)) break;
    result.timed_out = elapsed() > limit_seconds;
    if (result.timed_out || interrupt_requested) ::kill(-pid, SIGKILL);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
  result.seconds = elapsed();
  result.peak_bytes = int64_t{usage.ru_maxrss} << 10;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

/// Starts argv[0] in a process group of its own, both streams going to `scratch`/log. A tool that
/// is killed leaves its temporary files in `scratch`, which goes with them.
Result<pid_t> start(const std::vector<std::string>& argv, const std::string& folder,
                    const TemporaryFolder& scratch) {
  const std::string log = scratch.file("log"), temporary = "TMPDIR=" + scratch.path();
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("TMPDIR=")) variables.push_back(*variable);
  variables.push_back(const_cast<char*>(temporary.c_str()));
  variables.push_back(nullptr);
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
      ::posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes, args.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  return fail(ErrorKind::Tool, fmt::format("cannot start '{}'", argv[0]), std::strerror(error));
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "/usr/bin:/bin" : variable;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string file = path.substr(begin, end - begin) + "/" + name;
    if (end > begin && ::access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return "";
}

Result<ToolResult> run_tool(const std::vector<std::string>& argv, const ToolOptions& options) {
  if (find_program(argv[0]).empty())
    return fail(ErrorKind::Tool, fmt::format("'{}' is not installed", argv[0]), "it is not on PATH",
                "scripts/setup installs what is missing; `tilewright doctor` lists it");
  const TemporaryFolder scratch = TW_TRY(TemporaryFolder::create());
  ToolResult result = wait_for(TW_TRY(start(argv, options.folder, scratch)), options.limit_seconds);
  if (interrupt_requested) return fail(ErrorKind::Interrupted, "interrupted");
  result.output = TW_TRY(read_file(scratch.file("log")));
  return result;
}

tl::unexpected<Error> killed_tool(const std::string& name, const ToolResult& result) {
  return fail(
      ErrorKind::Limit, fmt::format("'{}' was killed after {:.1f} s", name, result.seconds),
      fmt::format("it had up to {:.1f} MiB of memory; the system kills programs when memory "
                  "runs out",
                  static_cast<double>(result.peak_bytes) / (1 << 20)),
      "close other programs, or ask for something smaller");
}

Result<ToolResult> run_checked(const std::vector<std::string>& argv, const ToolOptions& options) {
  ToolResult result = TW_TRY(run_tool(argv, options));
  if (result.timed_out)
    return fail(ErrorKind::Tool,
                fmt::format("'{}' did not finish in {} s", argv[0], options.limit_seconds));
  if (result.status == 0) return result;
  if (result.killed()) return killed_tool(argv[0], result);
  const size_t begin = result.output.size() - std::min(result.output.size(), kShown);
  return fail(ErrorKind::Tool, fmt::format("'{}' failed with status {}", argv[0], result.status),
              result.output.substr(begin));
}

Result<TemporaryFolder> TemporaryFolder::create(const std::string& parent) {
  std::error_code error;
  std::string path = parent.empty() ? fs::temp_directory_path(error).string() : parent;
  if (error) path = "/tmp";
  path += "/tilewright.XXXXXX";
  const std::lock_guard<std::mutex> guard(folders().lock);
  if (folders().ended) return fail(ErrorKind::Interrupted, "interrupted");
  if (::mkdtemp(path.data()) == nullptr)
    return fail(ErrorKind::Io, fmt::format("cannot create '{}'", path), std::strerror(errno),
                "set TMPDIR to a folder that can be written");
  folders().paths.insert(path);
  return TemporaryFolder(path);
}

TemporaryFolder::TemporaryFolder(std::string path) : path_(std::move(path)) {}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  remove_folder(path_);
  forget_folder(path_);
}

void TemporaryFolder::release() {
  forget_folder(path_);
  path_.clear();
}

void remove_temporary_folders() {
  const std::lock_guard<std::mutex> guard(folders().lock);
  folders().ended = true;
  for (const std::string& path : folders().paths) remove_folder(path);
}

}  // namespace tilewright
