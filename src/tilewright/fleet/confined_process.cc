#include "tilewright/fleet/confined_process.h"

#include <utility>

namespace tilewright::fleet {

Result<std::unique_ptr<ConfinedProcess>> ConfinedProcess::start(SandboxKind kind, Confined confined,
                                                                const Prepare& prepare) {
  std::unique_ptr<ConfinedProcess> process(new ConfinedProcess(TW_TRY(TemporaryFolder::create())));
  ConfinedProcess& it = *process;
  if (prepare) TW_TRY_STATUS(prepare(it.folder_.path()));
  it.confined_ = std::move(confined);
  it.confined_.writable_folder = it.folder_.path();
  it.confined_.started = [&it] {
    const std::lock_guard<std::mutex> lock(it.mutex_);
    it.started_ = true;
    it.changed_.notify_all();
  };
  // A child dies with the thread that started it, so that thread stays until it has ended.
  it.thread_ = std::thread([&it, kind] {
    Result<ToolResult> result = run_confined(kind, it.confined_, [&it] { return it.stop_.load(); });
    const std::lock_guard<std::mutex> lock(it.mutex_);
    it.result_ = std::move(result);
    it.changed_.notify_all();
  });
  std::unique_lock<std::mutex> lock(it.mutex_);
  it.changed_.wait(lock, [&it] { return it.started_ || it.result_; });
  if (it.result_ && !*it.result_) return tl::unexpected(it.result_->error());
  return process;
}

ConfinedProcess::~ConfinedProcess() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

Result<ToolResult> ConfinedProcess::end(double patience_s) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ended = [this] { return result_.has_value(); };
  changed_.wait_for(lock, std::chrono::duration<double>(patience_s), ended);
  stop_ = true;
  changed_.wait(lock, ended);
  return *result_;
}

}  // namespace tilewright::fleet
