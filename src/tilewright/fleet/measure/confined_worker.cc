#include "tilewright/fleet/measure/confined_worker.h"

#include <csignal>
#include <memory>
#include <utility>

#include "tilewright/fleet/confined_process.h"
#include "tilewright/fleet/measure/runner_door.h"

namespace tilewright::fleet {
namespace {

/// How long a process may take from closing its files to its end, before it is killed: then nobody
/// knows how it would have ended. It needs milliseconds, but may get no processor for seconds.
constexpr double kLeaveSeconds = 10;
/// Of a worker: it waits for jobs, and each of these has a limit of its own.
constexpr double kForEver = 1e9;

measure::Ending ending_of_worker(const Result<ToolResult>& result) {
  if (!result) return {0, 1, to_string(result.error())};
  measure::Ending ending;
  if (result->status > 128)
    ending.signal = result->status - 128;
  else
    ending.status = result->status;
  std::string text = result->output;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  ending.log = text.substr(text.rfind('\n') + 1);
  return ending;
}

class ConfinedWorker final : public measure::RunningWorker {
 public:
  ConfinedWorker(std::unique_ptr<ConfinedProcess> process, std::unique_ptr<RunnerDoor> door)
      : process_(std::move(process)), door_(std::move(door)) {}
  measure::Ending end(bool leaving) override {
    return ending_of_worker(process_->end(leaving ? kLeaveSeconds : 0));
  }

 private:
  std::unique_ptr<ConfinedProcess> process_;
  std::unique_ptr<RunnerDoor> door_;  ///< null: it needs none
};

}  // namespace

measure::StartWorker confined_workers(SandboxKind kind, Confined confined, OpenChild runner) {
  confined.limit_seconds = kForEver;
  return [kind, confined, runner](
             const std::vector<std::string>& argv,
             const std::array<int, 3>& files) -> Result<std::unique_ptr<measure::RunningWorker>> {
    Confined one = confined;
    one.argv = argv;
    one.descriptors = {files.begin(), files.end()};
    std::unique_ptr<RunnerDoor> door;
    if (runner) {
      door = TW_TRY(RunnerDoor::create(runner));
      one.descriptors.push_back(door->there());
    }
    auto process = TW_TRY(ConfinedProcess::start(kind, std::move(one)));
    if (door != nullptr) door->close_there();
    return std::make_unique<ConfinedWorker>(std::move(process), std::move(door));
  };
}

}  // namespace tilewright::fleet
