// After the fork of a process with threads only system calls are safe: another thread may hold the
// allocator. So `begin` works on what `start_child` has laid out, and reports through a pipe that
// closes by itself when the program begins.
#include "tilewright/fleet/confine/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#ifndef __NR_landlock_restrict_self
#define __NR_landlock_restrict_self 446
#endif

namespace tilewright::fleet {
namespace {

/// From here on no convention gives numbers to users, so that limits per user and signals are one
/// child's alone.
constexpr uid_t kFirstUnused = 0x70000000, kUnusedMask = 0x07ffffff;

/// Which step failed, and errno: what goes through the pipe.
struct Report {
  enum Step : int { Session, Descriptors, User, Folder, Privileges, Files, Calls, Limits, Exec };
  Step step = Exec;
  int error = 0;
};
const char* const kSteps[] = {"make a session for",
                              "pass descriptors to",
                              "change users for",
                              "enter the folder of",
                              "take privileges from",
                              "restrict the files of",
                              "filter the calls of",
                              "limit",
                              "start"};

/// What `begin` works on.
struct Prepared {
  char* const* argv;
  char* const* environment;
  const char* folder;
  const Child* child;
  const int* descriptors;  ///< of the new process, in order: 0, 1, 2, then the others
  int descriptor_count;
  sock_filter* filter;
  const size_t* own_pid;
  size_t own_pid_count;
  pid_t parent;
  int report;
};

[[noreturn]] void stop_with(int report, Report::Step step) {
  const Report text{step, errno};
  (void)!::write(report, &text, sizeof text);
  ::_exit(127);
}

/// Moves the descriptors to their places; all above close. `report` becomes the one behind them.
int place_descriptors(const Prepared& p) {
  // First out of the way of the places, then into them.
  constexpr int kHigh = 100;
  int report = ::fcntl(p.report, F_DUPFD_CLOEXEC, kHigh + p.descriptor_count);
  if (report < 0) stop_with(p.report, Report::Descriptors);
  for (int i = 0; i < p.descriptor_count; ++i)
    if (::dup3(p.descriptors[i], kHigh + i, O_CLOEXEC) < 0) stop_with(report, Report::Descriptors);
  for (int i = 0; i < p.descriptor_count; ++i)
    if (::dup2(kHigh + i, i) < 0) stop_with(report, Report::Descriptors);
  const int last = ::dup3(report, p.descriptor_count, O_CLOEXEC);
  if (last < 0) stop_with(report, Report::Descriptors);
  const auto first = static_cast<unsigned>(last + 1);
  if (::syscall(SYS_close_range, first, ~0u, 0) != 0)  // before Linux 5.9
    for (int fd = last + 1, end = static_cast<int>(::sysconf(_SC_OPEN_MAX)); fd < end; ++fd)
      ::close(fd);
  return last;
}

void become(uid_t user, int report) {
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
      ::syscall(SYS_setresgid, user, user, user) != 0 ||
      ::syscall(SYS_setresuid, user, user, user) != 0)
    stop_with(report, Report::User);
}

/// As a shell would start it: the parent may ignore or block signals.
void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void confine(const Prepared& p, int ruleset, int report) {
  if (p.child->no_new_privileges && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    stop_with(report, Report::Privileges);
  if (ruleset >= 0 && ::syscall(__NR_landlock_restrict_self, ruleset, 0) != 0)
    stop_with(report, Report::Files);
  if (ruleset >= 0) ::close(ruleset);
  if (p.filter == nullptr) return;
  const auto pid = static_cast<uint32_t>(::getpid());
  for (size_t i = 0; i < p.own_pid_count; ++i) p.filter[p.own_pid[i]].k = pid;
  const sock_fprog program{static_cast<unsigned short>(p.child->filter.code.size()), p.filter};
  // The flag: code that is measured is not to be slowed down by a filter.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) !=
      0)
    stop_with(report, Report::Calls);
}

[[noreturn]] void begin(const Prepared& p) {
  if (::setsid() < 0) stop_with(p.report, Report::Session);
  const int report = place_descriptors(p);
  // The ruleset is the last one, and not for the program.
  const int ruleset = p.child->ruleset >= 0 ? p.descriptor_count - 1 : -1;
  if (p.child->user) become(*p.child->user, report);
  if (::chdir(p.folder) != 0) stop_with(report, Report::Folder);
  reset_signals();
  ::umask(022);
  // After the change of users, which takes this back.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) stop_with(report, Report::Privileges);
  if (::getppid() != p.parent) ::_exit(127);
  confine(p, ruleset, report);
  // Last, since a large parent may be beyond them: its copy could not even use more stack.
  for (const auto& [resource, most] : p.child->limits) {
    // Of time the first limit is a signal with a name, the second one kills.
    const struct rlimit limit{most, resource == RLIMIT_CPU ? most + 1 : most};
    if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0)
      stop_with(report, Report::Limits);
  }
  ::execve(p.argv[0], p.argv, p.environment);
  stop_with(report, Report::Exec);
}

/// Whether a step failed; waits until the program has begun.
std::optional<Report> read_report(int pipe) {
  Report report;
  ssize_t got = -1;
  do got = ::read(pipe, &report, sizeof report);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof report) ? std::optional(report) : std::nullopt;
}

std::vector<char*> pointers_of(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<pid_t> start_child(Child child) {
  const std::vector<char*> argv = pointers_of(child.argv);
  const std::vector<char*> environment = pointers_of(child.environment);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0)
    return fail(ErrorKind::Io, "no pipe can be made", std::strerror(errno));
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<int> descriptors = {child.input >= 0 ? child.input : null,
                                  child.answers >= 0 ? child.answers : child.output, child.output};
  descriptors.insert(descriptors.end(), child.descriptors.begin(), child.descriptors.end());
  if (child.ruleset >= 0) descriptors.push_back(child.ruleset);
  const Prepared prepared{argv.data(),
                          environment.data(),
                          child.folder.c_str(),
                          &child,
                          descriptors.data(),
                          static_cast<int>(descriptors.size()),
                          child.filter.code.empty() ? nullptr : child.filter.code.data(),
                          child.filter.own_pid.data(),
                          child.filter.own_pid.size(),
                          ::getpid(),
                          report[1]};
  const pid_t pid = ::fork();
  if (pid == 0) begin(prepared);
  const int fork_error = errno;
  ::close(report[1]);
  if (null >= 0) ::close(null);
  const std::optional<Report> failed = pid > 0 ? read_report(report[0]) : std::nullopt;
  ::close(report[0]);
  if (pid < 0)
    return fail(ErrorKind::Tool, fmt::format("cannot start '{}'", child.argv[0]),
                std::strerror(fork_error));
  if (!failed) return pid;
  ::waitpid(pid, nullptr, 0);
  return fail(ErrorKind::Tool, fmt::format("cannot {} '{}'", kSteps[failed->step], child.argv[0]),
              std::strerror(failed->error));
}

std::vector<std::pair<int, rlim_t>> limits_of(double seconds, int64_t memory_bytes,
                                              int64_t file_bytes, int64_t processes) {
  constexpr rlim_t kFiles = 256, kLocked = 64 << 10;
  // All threads together; the clock on the wall comes first, unless who reads it is dead.
  const double cpu = std::ceil(seconds * static_cast<double>(std::max<int64_t>(processes, 1))) + 1;
  std::vector<std::pair<int, rlim_t>> limits = {
      // 1 and not 0: systems that hand dumps to a program do so whatever the size, unless it is 1.
      {RLIMIT_CORE, 1},        {RLIMIT_CPU, static_cast<rlim_t>(std::min(cpu, 1e9))},
      {RLIMIT_NOFILE, kFiles}, {RLIMIT_FSIZE, static_cast<rlim_t>(file_bytes)},
      {RLIMIT_MSGQUEUE, 0},    {RLIMIT_MEMLOCK, kLocked},
      {RLIMIT_RTPRIO, 0},      {RLIMIT_NICE, 0},
  };
  if (processes > 0) limits.emplace_back(RLIMIT_NPROC, static_cast<rlim_t>(processes));
  if (memory_bytes > 0) limits.emplace_back(RLIMIT_AS, static_cast<rlim_t>(memory_bytes));
  // What is lower already stays: only root may raise it again.
  for (auto& [resource, most] : limits) {
    struct rlimit now{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &now) == 0)
      most = std::min(most, now.rlim_max);
  }
  return limits;
}

int64_t tasks_of(uid_t user) {
  if (user == 0 || user >= kFirstUnused) return 0;  // root has no such limit
  int64_t tasks = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string id = entry.path().filename();
    if (id.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream status(entry.path() / "status");
    std::string line;
    int64_t threads = 0;
    bool his = false;
    while (std::getline(status, line)) {
      if (line.starts_with("Uid:")) his = std::strtoul(line.c_str() + 4, nullptr, 10) == user;
      if (line.starts_with("Threads:")) threads = std::strtol(line.c_str() + 8, nullptr, 10);
    }
    if (his) tasks += threads;
  }
  return tasks;
}

namespace {

/// Whether a process of ours can become `user`: a child tries it.
bool can_become(uid_t user) {
  const pid_t pid = ::fork();
  if (pid == 0)
    ::_exit(::syscall(SYS_setresgid, user, user, user) == 0 &&
                    ::syscall(SYS_setresuid, user, user, user) == 0
                ? 0
                : 1);
  int status = 1;
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && status == 0;
}

}  // namespace

std::optional<uid_t> unused_user() {
  constexpr uid_t kNobody = 65534;
  static const bool high =
      can_become(kFirstUnused);  // inside some containers only 65536 numbers exist
  static const bool low = high || can_become(kNobody);
  if (!low) return std::nullopt;
  uint32_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) bits = static_cast<uint32_t>(::getpid());
  return high ? kFirstUnused + (bits & kUnusedMask) : kNobody;
}

}  // namespace tilewright::fleet
