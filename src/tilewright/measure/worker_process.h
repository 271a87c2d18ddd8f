// A worker as its parent sees it: started, talked to, ended.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/measure/job.h"

namespace tilewright::measure {

/// A file that is closed at the end of the scope.
class OwnedFile {
 public:
  explicit OwnedFile(int file = -1) : file_(file) {}
  OwnedFile(OwnedFile&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  OwnedFile& operator=(OwnedFile&& other) noexcept;
  ~OwnedFile();
  int get() const { return file_; }

 private:
  int file_;
};

/// A file without a name, gone with the last process that has it. errors: Io.
Result<OwnedFile> nameless_file(const char* purpose);

/// How a process ended.
struct Ending {
  int signal = 0;  ///< 0: it ended by itself
  int status = 0;
  std::string log;  ///< the last line it wrote to stderr
};

/// Killed and waited for when destroyed: no zombie stays.
class WorkerProcess {
 public:
  /// In a process group of its own, so that Ctrl-C reaches the parent alone.
  /// errors: Tool, Io.
  static Result<std::unique_ptr<WorkerProcess>> start(const std::vector<std::string>& argv,
                                                      int turn_file, int results_file);
  ~WorkerProcess();

  int socket() const { return socket_.get(); }
  /// False if the worker is gone.
  bool send(const Job& job);
  /// What has arrived by now, without waiting; `gone` once the worker closed its side.
  std::vector<Reply> receive(bool& gone);
  /// Kills it if it still runs.
  Ending end();

 private:
  WorkerProcess(pid_t pid, OwnedFile socket, OwnedFile log)
      : pid_(pid), socket_(std::move(socket)), log_(std::move(log)) {}
  pid_t pid_;
  OwnedFile socket_, log_;
  std::string text_;  ///< the beginning of a line
};

}  // namespace tilewright::measure
