#include "tilewright/fleet/confine/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tilewright/fleet/confine/bubblewrap.h"
#include "tilewright/fleet/confine/folder.h"

namespace tilewright::fleet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kKeptOutput = 64 << 10;
constexpr size_t kMostStatus = 4096;
constexpr int kTickMs = 20;
constexpr double kLookEvery = 0.05;  ///< seconds between looks at what it uses

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int open_process(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));  // -1 before Linux 5.3
}

Status make_pipe(OwnedFd& read, OwnedFd& write) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorKind::Io, "no pipe can be made", std::strerror(errno));
  read = OwnedFd(ends[0]);
  write = OwnedFd(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {};
}

/// Adds what a pipe holds, and keeps the last `most` bytes. False: nobody writes to it any more.
bool drain(const OwnedFd& pipe, std::string& text, size_t most) {
  char chunk[16384];
  for (;;) {
    const ssize_t got = ::read(pipe.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0;
    text.append(chunk, static_cast<size_t>(got));
    if (text.size() > most) text.erase(0, text.size() - most);
  }
}

/// Text of strangers: it is shown on terminals and goes into JSON.
std::string printable(std::string text) {
  for (char& c : text)
    if (c != '\n' && c != '\t' && (c < ' ' || c > '~')) c = '?';
  return text;
}

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

Result<Supervisor> Supervisor::create(SandboxKind kind, const Confined& confined,
                                      const std::function<bool()>& stop) {
  Supervisor supervisor(kind, confined, stop);
  TW_TRY_STATUS(make_pipe(supervisor.output_read_, supervisor.output_write_));
  if (kind == SandboxKind::Bubblewrap)
    TW_TRY_STATUS(make_pipe(supervisor.status_read_, supervisor.status_write_));
  return supervisor;
}

Result<ToolResult> Supervisor::run(Child child) {
  bytes_before_ = folder_usage(confined_->writable_folder, confined_->files).bytes;
  const Clock::time_point begin = Clock::now();
  pid_ = TW_TRY(start_child(std::move(child)));
  process_ = OwnedFd(open_process(pid_));
  output_write_.reset();
  status_write_.reset();
  if (confined_->started) confined_->started();
  ToolResult result;
  for (double looked = 0; !has_ended();) {
    wait(process_ ? kTickMs : 1);
    const double now = seconds_since(begin);
    result.timed_out |= now > confined_->limit_seconds;
    if (result.timed_out || interrupt_requested || (*stop_ && (*stop_)()))
      stop_it(128 + SIGKILL, "");
    if (now - looked < kLookEvery) continue;
    look_at_usage();
    looked = now;
  }
  result.seconds = seconds_since(begin);
  end_all();
  int status = 0;
  struct rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  read_all();
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (stopped_status_ != 0) result.status = stopped_status_;
  result.peak_bytes = std::max(int64_t{usage.ru_maxrss} << 10, peak_bytes_);
  result.output = printable(std::move(output_));
  if (!stopped_why_.empty()) {
    if (!result.output.empty() && result.output.back() != '\n') result.output += '\n';
    result.output += stopped_why_ + "\n";
  }
  if (interrupt_requested) return fail(ErrorKind::Interrupted, "interrupted");
  return result;
}

/// Until something is written, the child ends, or the time is over.
void Supervisor::wait(int milliseconds) {
  pollfd watched[] = {{output_read_.get(), POLLIN, 0},
                      {process_.get(), POLLIN, 0},
                      {status_read_.get(), POLLIN, 0}};
  (void)::poll(watched, std::size(watched), milliseconds);
  read_all();
}

void Supervisor::read_all() {
  if (output_read_ && !drain(output_read_, output_, kKeptOutput)) output_read_.reset();
  if (status_read_ && !drain(status_read_, status_text_, kMostStatus)) status_read_.reset();
  find_first();
}

void Supervisor::find_first() {
  if (kind_ != SandboxKind::Bubblewrap || first_) return;
  const int first = parse_status(status_text_).first;
  if (first > 0) first_ = OwnedFd(open_process(first));
}

void Supervisor::look_at_usage() {
  const bool inside = kind_ == SandboxKind::Bubblewrap;
  const pid_t first = inside ? parse_status(status_text_).first : pid_;
  if (first <= 0) return;
  const Usage usage = usage_of(
      members_of({.first = first, .inside = inside, .grows = confined_->starts_processes}));
  peak_bytes_ = std::max(peak_bytes_, usage.memory_bytes);
  if (usage.memory_bytes > confined_->memory_bytes)
    stop_it(128 + SIGKILL, fmt::format("stopped: it had {:.1f} MiB of memory, its limit is {:.1f}",
                                       mib(usage.memory_bytes), mib(confined_->memory_bytes)));
  const FolderUsage folder = folder_usage(confined_->writable_folder, confined_->files);
  const int64_t written = folder.bytes - bytes_before_ + usage.hidden_bytes;
  if (folder.files > confined_->files || folder.too_deep)
    stop_it(128 + SIGXFSZ,
            fmt::format("stopped: its folder has more than {} files, or folders too deep in others",
                        confined_->files));
  else if (written > confined_->file_bytes)
    stop_it(128 + SIGXFSZ, fmt::format("stopped: it wrote {:.1f} MiB, its limit is {:.1f}",
                                       mib(written), mib(confined_->file_bytes)));
}

/// The first reason is the one that is told.
void Supervisor::stop_it(int status, const std::string& why) {
  if (stopped_status_ == 0) {
    stopped_status_ = status;
    stopped_why_ = why;
  }
  ::kill(-pid_, SIGKILL);
}

/// It is not waited for yet: its number must stay its own until all of its group are ended.
bool Supervisor::has_ended() const {
  siginfo_t info{};
  const int got = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return got != 0 ? errno != EINTR : info.si_pid == pid_;
}

/// Nothing of it writes to its folder any more when this returns.
void Supervisor::end_all() {
  ::kill(-pid_, SIGKILL);
  read_all();
  constexpr int kPatienceMs = 5000;
  if (first_) {  // it goes after all others of its namespace
    pollfd watched{first_.get(), POLLIN, 0};
    (void)::poll(&watched, 1, kPatienceMs);
  } else if (confined_->starts_processes) {
    const Family family{.first = pid_, .inside = false, .grows = true};
    for (int i = 0; i < kPatienceMs && !members_of(family).empty(); ++i) ::usleep(1000);
  }
}

}  // namespace tilewright::fleet
