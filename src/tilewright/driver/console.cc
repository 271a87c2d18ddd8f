#include "tilewright/driver/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "tilewright/base/process.h"
#include "tilewright/driver/error_report.h"

namespace tilewright::driver {
namespace {

void on_interrupt(int) {
  if (interrupt_requested.exchange(true)) ::_exit(130);  // the second time
}

/// How often PromptEnd looks for Ctrl-C, and how long others may take to stop in order.
constexpr std::chrono::milliseconds kLook{50}, kGrace{500};

/// Whether one line is written over and over.
bool is_live() { return console().progress == "auto" && ::isatty(2) != 0; }

}  // namespace

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage:
    case ErrorKind::Parse:
      return 2;
    case ErrorKind::Invalid:
    case ErrorKind::Unsupported:
      return 3;
    case ErrorKind::Device:
      return 4;
    case ErrorKind::Mismatch:
      return 5;
    case ErrorKind::NotApplicable:
    case ErrorKind::Capacity:
      return 6;
    case ErrorKind::Tool:
      return 7;
    case ErrorKind::Package:
      return 8;
    case ErrorKind::Limit:
      return 9;
    case ErrorKind::Unreachable:
      return 10;
    case ErrorKind::Io:
      return 2;
    case ErrorKind::Interrupted:
      return 130;
  }
  return 1;
}

ConsoleOptions& console() {
  static ConsoleOptions options;
  return options;
}

void tell(const std::string& text) { std::fputs(text.c_str(), stderr); }

void say(const std::string& text) {
  if (!console().quiet) tell(text + "\n");
}

void detail(const std::string& text) {
  if (console().verbose) tell(text + "\n");
}

bool Progress::due() {
  const auto now = Clock::now();
  const auto pause = is_live() ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (console().quiet || console().progress == "none") return false;
  if (now - start_ < std::chrono::seconds(2) || (shown_ && now - last_ < pause)) return false;
  shown_ = true;
  last_ = now;
  return true;
}

void Progress::print(const std::string& line) const {
  const bool live = is_live();
  tell(fmt::format("{}{}{}", live ? "\r\033[K" : "", line, live ? "" : "\n"));
  std::fflush(stderr);
}

void Progress::update(int64_t done, int64_t total, const std::string& what) {
  if (!due()) return;
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  print(fmt::format("{}: {}/{}  {:.0f} s  {}", task_, done, total, elapsed, what.substr(0, 48)));
}

void Progress::show(const std::string& text) {
  if (due()) print(fmt::format("{}: {}", task_, text));
}

Progress::~Progress() {
  if (shown_ && is_live()) tell("\r\033[K");
}

void open_standard_streams() {
  // Reading only: what is written to a closed stream fails, as it should.
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDONLY);
}

int end_stdout(int code) {
  const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const int reason = errno;
  if (arrived) return code;
  struct pollfd reader{1, POLLOUT, 0};
  if (::poll(&reader, 1, 0) == 1 && (reader.revents & (POLLERR | POLLHUP)) != 0) {
    std::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  }
  tell(fmt::format("error: cannot write to stdout\n  why: {}\n", std::strerror(reason)));
  return code != 0 ? code : exit_code(ErrorKind::Io);
}

bool interrupted() { return interrupt_requested; }

void install_interrupt_handler() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

Status check_interrupt() {
  if (interrupted()) return fail(ErrorKind::Interrupted, "interrupted");
  return {};
}

PromptEnd::PromptEnd() {
  if (!interrupted()) watcher_ = std::thread([this] { watch(); });
}

PromptEnd::~PromptEnd() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    done_ = true;
  }
  over_.notify_one();
  watcher_.join();
}

void PromptEnd::watch() {
  std::unique_lock<std::mutex> guard(lock_);
  while (!interrupted())
    if (over_.wait_for(guard, kLook, [&] { return done_; })) return;
  if (over_.wait_for(guard, kGrace, [&] { return done_; })) return;
  const int code =
      report_error(Error{ErrorKind::Interrupted, "interrupted", {}, {}, {}, {}}, console().json);
  std::fflush(stdout);
  remove_temporary_folders();
  ::_exit(code);
}

compile::Observer console_observer() {
  // The line of the task at work; a new one begins with each task.
  struct Shown {
    std::string task;
    std::optional<Progress> progress;
  };
  const auto shown = std::make_shared<Shown>();
  compile::Observer observer;
  observer.progress = [shown](const std::string& task, int64_t done, int64_t total,
                              const std::string& what) {
    if (done >= total || task != shown->task) shown->progress.reset();
    if (done >= total) return shown->task.clear();
    if (!shown->progress) shown->progress.emplace(task), shown->task = task;
    shown->progress->update(done, total, what);
  };
  observer.warn = say;
  observer.cancelled = interrupted;
  return observer;
}

}  // namespace tilewright::driver
