#include "tilewright/driver/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "tilewright/base/process.h"

namespace tilewright::driver {
namespace {

void on_interrupt(int) {
  if (interrupt_requested.exchange(true)) ::_exit(130);  // the second time
}

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

void say(const std::string& text) {
  if (!console().quiet) fmt::print(stderr, "{}\n", text);
}

void detail(const std::string& text) {
  if (console().verbose) fmt::print(stderr, "{}\n", text);
}

void Progress::update(int64_t done, int64_t total, const std::string& what) {
  const auto now = Clock::now();
  const bool live = console().progress == "auto" && ::isatty(2) != 0;
  const auto pause = live ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (console().quiet || console().progress == "none") return;
  if (now - start_ < std::chrono::seconds(2) || (shown_ && now - last_ < pause)) return;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const std::string line =
      fmt::format("{}: {}/{}  {:.0f} s  {}", task_, done, total, elapsed, what.substr(0, 48));
  fmt::print(stderr, "{}{}{}", live ? "\r\033[K" : "", line, live ? "" : "\n");
  std::fflush(stderr);
  shown_ = true;
  last_ = now;
}

Progress::~Progress() {
  if (shown_ && console().progress == "auto" && ::isatty(2) != 0) fmt::print(stderr, "\r\033[K");
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

}  // namespace tilewright::driver
