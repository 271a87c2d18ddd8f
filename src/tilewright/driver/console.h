// Talking to people: progress and messages on stderr, exit codes. Data goes to stdout elsewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tilewright/base/result.h"
#include "tilewright/compile/observer.h"

namespace tilewright::driver {

/// Exit code of the process for an error kind. source: the table in docs/cli.md.
int exit_code(ErrorKind kind);

struct ConsoleOptions {
  bool quiet = false;
  bool verbose = false;
  std::string progress = "auto";  ///< auto, plain or none
  bool json = false;              ///< errors are documents on stdout, too
};

/// The process' console settings, set once by main.
ConsoleOptions& console();

/// Text on stderr, whatever becomes of it: who cannot be told is not told.
void tell(const std::string& text);
/// A message on stderr unless quiet; `detail` only with -v.
void say(const std::string& text);
void detail(const std::string& text);

/// One live line on a terminal, else a plain line at most every 10 s; silent for its first 2
/// seconds.
class Progress {
 public:
  explicit Progress(std::string task) : task_(std::move(task)) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// `done` of `total`, with what is being worked on.
  void update(int64_t done, int64_t total, const std::string& what);
  /// A line of the caller's own.
  void show(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  /// Whether it is time for another line; counts as shown.
  bool due();
  void print(const std::string& line) const;
  std::string task_;
  Clock::time_point start_ = Clock::now(), last_ = start_;
  bool shown_ = false;
};

/// To be called first: a stream that the caller closed must not become the next file opened.
void open_standard_streams();
/// The end of what goes to stdout. `code` is what the process returns if all of it arrived. If its
/// reader is gone (`| head`), the process ends here as other programs do, by SIGPIPE; if stdout
/// refused it (a full disk), an error is printed and the result is 2 instead of 0.
int end_stdout(int code);

/// True once the user pressed Ctrl-C (the handler only sets a flag). A second Ctrl-C ends the
/// process.
bool interrupted();
void install_interrupt_handler();
/// An Interrupted error if the user pressed Ctrl-C.
Status check_interrupt();

/// While one lives, Ctrl-C ends the process within a second, whatever is at work: one long step of
/// a rule and the libraries that compile code ask nobody. First everybody has half a second to stop
/// in order; then the error is reported, temporary folders go, and the exit code is 130. After an
/// earlier Ctrl-C it does nothing: what is done then is what the user gets in spite of it.
class PromptEnd {
 public:
  PromptEnd();
  ~PromptEnd();
  PromptEnd(const PromptEnd&) = delete;
  PromptEnd& operator=(const PromptEnd&) = delete;

 private:
  void watch();
  std::mutex lock_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread watcher_;
};

/// Progress, warnings and Ctrl-C for the compiler.
compile::Observer console_observer();

}  // namespace tilewright::driver
