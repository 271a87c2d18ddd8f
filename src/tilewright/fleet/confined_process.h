// A confined program that runs beside this one: talked to through descriptors, watched by a thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tilewright/fleet/sandbox.h"

namespace tilewright::fleet {

/// Ended when destroyed. Its limits are watched all the time, as run_confined does.
class ConfinedProcess {
 public:
  /// Puts into the folder what the program finds there.
  using Prepare = std::function<Status(const std::string& folder)>;
  /// In a folder of its own, so `confined` names none. When this returns, the program has its
  /// descriptors, and the caller may close them. errors: those of `prepare` and run_confined.
  static Result<std::unique_ptr<ConfinedProcess>> start(SandboxKind kind, Confined confined,
                                                        const Prepare& prepare = {});
  ~ConfinedProcess();
  ConfinedProcess(const ConfinedProcess&) = delete;
  ConfinedProcess& operator=(const ConfinedProcess&) = delete;

  /// Waits `patience_s` for its end, then ends it. errors: those of run_confined.
  Result<ToolResult> end(double patience_s);

 private:
  explicit ConfinedProcess(TemporaryFolder folder) : folder_(std::move(folder)) {}

  TemporaryFolder folder_;
  Confined confined_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::optional<Result<ToolResult>> result_;  ///< once it has ended
  std::thread thread_;
};

}  // namespace tilewright::fleet
