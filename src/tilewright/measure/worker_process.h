// A worker as its parent sees it: started, talked to, ended.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/measure/job.h"
#include "tilewright/measure/running_worker.h"

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

/// A worker that takes jobs.
class WorkerProcess {
 public:
  /// errors: Tool, Io.
  static Result<std::unique_ptr<WorkerProcess>> start(const StartWorker& start,
                                                      const std::vector<std::string>& argv,
                                                      int turn_file, int results_file);

  int socket() const { return socket_.get(); }
  /// False if the worker is gone.
  bool send(const Job& job);
  /// What has arrived by now, without waiting; `gone` once the worker closed its side, or writes
  /// what is no reply.
  std::vector<Reply> receive(bool& gone);
  /// Kills it if it still runs.
  Ending end() { return running_->end(closed_); }

 private:
  WorkerProcess(std::unique_ptr<RunningWorker> running, OwnedFile socket)
      : running_(std::move(running)), socket_(std::move(socket)) {}
  std::unique_ptr<RunningWorker> running_;
  OwnedFile socket_;
  std::string text_;     ///< the beginning of a line
  bool closed_ = false;  ///< by the worker
};

}  // namespace tilewright::measure
