#include "tilewright/fleet/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "tilewright/fleet/confine/bubblewrap.h"
#include "tilewright/fleet/confine/child.h"
#include "tilewright/fleet/confine/folder.h"
#include "tilewright/fleet/confine/landlock.h"
#include "tilewright/fleet/confine/supervisor.h"

namespace tilewright::fleet {
namespace {

namespace fs = std::filesystem;

constexpr int kBubblewrapProcesses = 3;  ///< its monitor, the first of the namespace, one between

/// What is decided once per run, before the child is described.
struct Setting {
  const Confined& confined;
  std::string program;        ///< behind all links
  std::optional<uid_t> user;  ///< as whom it runs; absent: as this process
  std::vector<std::string> environment;
};

Result<Setting> setting_of(SandboxKind kind, const Confined& confined) {
  Setting setting{confined, {}, {}, {}};
  std::error_code error;
  const std::string found = find_program(confined.argv[0]);
  if (!found.empty()) setting.program = fs::canonical(found, error).string();
  if (setting.program.empty())
    return fail(ErrorKind::Tool, fmt::format("'{}' cannot be started", confined.argv[0]),
                "there is no such program");
  if (kind != SandboxKind::None && ::geteuid() == 0) {
    setting.user = unused_user();
    if (!setting.user)
      return fail(ErrorKind::Device, "children cannot be confined as root here",
                  "they are to run as a user that owns nothing, and this process may not change "
                  "users",
                  "start it as an ordinary user, or with the capabilities SETUID and SETGID");
  }
  setting.environment = confined.environment;
  for (const std::string& variable :
       {std::string("PATH=/usr/bin:/bin"), "HOME=" + confined.writable_folder,
        "TMPDIR=" + confined.writable_folder}) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    if (std::none_of(confined.environment.begin(), confined.environment.end(),
                     [&](const std::string& given) { return given.starts_with(name); }))
      setting.environment.push_back(variable);
  }
  return setting;
}

/// What each kind has in common.
Child child_of(const Setting& setting, int output, int further_processes) {
  const Confined& confined = setting.confined;
  const int64_t there = tasks_of(setting.user.value_or(::geteuid()));
  Child child;
  child.argv = confined.argv;
  child.argv[0] = setting.program;
  child.environment = setting.environment;
  child.folder = confined.writable_folder;
  child.user = setting.user;
  child.limits =
      limits_of(confined.limit_seconds, confined.devices.empty() ? confined.memory_bytes : 0,
                confined.file_bytes, there + confined.processes + further_processes);
  child.output = output;
  child.descriptors = confined.descriptors;
  child.input = confined.input;
  child.answers = confined.answers;
  return child;
}

Result<OwnedFd> filter_file(const CallFilter& filter) {
  OwnedFd file(::memfd_create("filter", MFD_CLOEXEC));
  const size_t bytes = filter.code.size() * sizeof(sock_filter);
  if (!file || ::write(file.get(), filter.code.data(), bytes) != static_cast<ssize_t>(bytes) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return fail(ErrorKind::Io, "no file in memory can be made", std::strerror(errno));
  return file;
}

Result<CallFilter> filter_of(const CallRules& rules) {
  CallFilter filter = call_filter(rules);
  if (filter.code.empty())
    return fail(ErrorKind::Device, "there is no filter of system calls for this processor");
  return filter;
}

Result<ToolResult> run_in_bubblewrap(const Setting& setting, Supervisor& supervisor) {
  const std::string bwrap = find_program("bwrap");
  if (bwrap.empty())
    return fail(ErrorKind::Tool, "'bwrap' is not installed", "it is not on PATH",
                "apt install bubblewrap");
  const OwnedFd filter = TW_TRY(filter_file(TW_TRY(
      filter_of({.shares_pids = false, .starts_processes = setting.confined.starts_processes}))));
  Child child = child_of(setting, supervisor.output(), kBubblewrapProcesses);
  // Behind those of the program; bwrap keeps these two to itself.
  const int first = 3 + static_cast<int>(child.descriptors.size());
  child.descriptors.insert(child.descriptors.end(), {supervisor.status(), filter.get()});
  child.argv =
      bubblewrap_command(setting.confined, setting.program, setting.environment, first, first + 1);
  child.argv[0] = bwrap;
  child.argv.push_back(setting.program);
  child.argv.insert(child.argv.end(), setting.confined.argv.begin() + 1,
                    setting.confined.argv.end());
  child.no_new_privileges = false;  // some systems have a bwrap that needs them; it drops them
  const ToolResult result = TW_TRY(supervisor.run(std::move(child)));
  if (result.status == 0 || result.status > 128 || result.timed_out ||
      parse_status(supervisor.status_text()).ended)
    return result;
  return fail(ErrorKind::Tool, "bwrap cannot confine a child", result.output,
              "allow namespaces for users, or use --sandbox landlock");
}

Result<ToolResult> run_with_landlock(const Setting& setting, Supervisor& supervisor) {
  LandlockPaths paths;
  paths.readable = system_folders();
  paths.readable.push_back(setting.program);
  paths.readable.insert(paths.readable.end(), setting.confined.read_only.begin(),
                        setting.confined.read_only.end());
  paths.writable = {setting.confined.writable_folder};
  paths.devices = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};
  paths.devices.insert(paths.devices.end(), setting.confined.devices.begin(),
                       setting.confined.devices.end());
  const OwnedFd ruleset(TW_TRY(landlock_ruleset(paths)));
  Child child = child_of(setting, supervisor.output(), 0);
  child.ruleset = ruleset.get();
  child.filter = TW_TRY(
      filter_of({.shares_pids = true, .starts_processes = setting.confined.starts_processes}));
  return supervisor.run(std::move(child));
}

}  // namespace

const char* name(SandboxKind kind) {
  return kind == SandboxKind::Bubblewrap ? "bwrap"
         : kind == SandboxKind::Landlock ? "landlock"
                                         : "none";
}

Result<SandboxKind> parse_sandbox(const std::string& text) {
  for (const SandboxKind kind : {SandboxKind::Bubblewrap, SandboxKind::Landlock, SandboxKind::None})
    if (text == name(kind)) return kind;
  return fail(ErrorKind::Usage, fmt::format("there is no sandbox '{}'", text), {},
              "bwrap, landlock or none");
}

Status check_sandbox(SandboxKind kind) {
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  constexpr double kPatience = 10;
  const ToolResult result = TW_TRY(run_confined(
      kind, {.argv = {"true"}, .writable_folder = folder.path(), .limit_seconds = kPatience}));
  if (result.status == 0) return {};
  return fail(ErrorKind::Device,
              fmt::format("a child that does nothing fails in the sandbox '{}'", name(kind)),
              ending_of(result).reason);
}

Result<SandboxKind> best_sandbox() {
  std::string reasons;
  for (const SandboxKind kind : {SandboxKind::Bubblewrap, SandboxKind::Landlock}) {
    const Status status = check_sandbox(kind);
    if (status) return kind;
    if (status.error().kind == ErrorKind::Interrupted) return tl::unexpected(status.error());
    const Error& error = status.error();
    reasons += fmt::format("{}{}: {}{}{}", reasons.empty() ? "" : "\n", name(kind), error.what,
                           error.why.empty() ? "" : ": ", error.why);
  }
  return fail(ErrorKind::Device, "children cannot be confined here", reasons,
              "install bubblewrap and allow namespaces for users, or boot Linux 5.13 or newer with "
              "Landlock;\n--sandbox none runs what anybody submits as the user that you are");
}

Result<ToolResult> run_confined(SandboxKind kind, const Confined& confined,
                                const std::function<bool()>& stop) {
  const Setting setting = TW_TRY(setting_of(kind, confined));
  TW_TRY_STATUS(hand_over(confined.writable_folder, setting.user));
  Supervisor supervisor = TW_TRY(Supervisor::create(kind, confined, stop));
  Result<ToolResult> result =
      kind == SandboxKind::Bubblewrap ? run_in_bubblewrap(setting, supervisor)
      : kind == SandboxKind::Landlock ? run_with_landlock(setting, supervisor)
                                      : supervisor.run(child_of(setting, supervisor.output(), 0));
  unlock_folders(confined.writable_folder);
  if (!result && setting.user && result.error().fix.empty())
    result.error().fix =
        "children of root run as another user: what they read must be readable by all";
  return result;
}

ChildEnd ending_of(const ToolResult& child) {
  if (child.timed_out) return {"timeout", fmt::format("it ran for {:.1f} s", child.seconds)};
  if (child.status == 0) return {"ok", ""};
  ChildEnd ending{"crash", ""};
  switch (child.status - 128) {
    case SIGKILL:
      ending = {"oom", "it was killed: memory ran out"};
      break;
    case SIGXCPU:
      ending = {"timeout", "it used more time of the processor than it may"};
      break;
    case SIGXFSZ:
      ending.reason = "it wrote more than it may";
      break;
    case SIGSYS:
      ending.reason = "it made a forbidden system call";
      break;
    default:
      // Numbers of signals end at 64; ssh ends with 255 where it finds nobody.
      ending.reason = child.status > 128 && child.status <= 128 + 64
                          ? fmt::format("it ended by signal {}", child.status - 128)
                          : fmt::format("it ended with {}", child.status);
  }
  constexpr size_t kShown = 2000;
  std::string tail =
      child.output.substr(child.output.size() - std::min(child.output.size(), kShown));
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  if (!tail.empty()) ending.reason += ": " + tail;
  return ending;
}

}  // namespace tilewright::fleet
