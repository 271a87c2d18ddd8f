#include "tilewright/fleet/open_package.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/pipes.h"

namespace tilewright::fleet {
namespace {

constexpr double kLeaveSeconds = 10;  ///< from the end of a child's descriptors to its own

}  // namespace

Result<std::unique_ptr<OpenPackage>> OpenPackage::start(const OpenChild& child,
                                                        const ConfinedProcess::Prepare& prepare) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(ErrorKind::Io, "no pair of sockets can be made", std::strerror(errno));
  RunnerLink link(ends[0], ends[0]);
  const OwnedFd there(ends[1]);
  return std::unique_ptr<OpenPackage>(
      new OpenPackage(std::move(link), TW_TRY(child(there.get(), there.get(), prepare))));
}

Result<std::unique_ptr<OpenPackage>> OpenPackage::start_by_stream(const OpenChild& child,
                                                                  nlohmann::json how,
                                                                  std::string package) {
  RunnerPipes pipes = TW_TRY(RunnerPipes::create());
  RunnerLink link(pipes.to.release(), pipes.from.release());
  link.give(std::move(how), std::move(package));
  return std::unique_ptr<OpenPackage>(new OpenPackage(
      std::move(link), TW_TRY(child(pipes.input.get(), pipes.answers.get(), nullptr))));
}

Result<OpenRun> OpenPackage::run(nlohmann::json job, const std::vector<std::string>& inputs,
                                 double limit_s, const std::function<bool()>& stop) {
  const auto begin = SteadyClock::now();
  auto answered = link_.ask(std::move(job), inputs, limit_s, stop);
  if (answered)
    return OpenRun{{"ok", ""}, std::move(answered->reply), std::move(answered->outputs)};
  const std::unique_ptr<ConfinedProcess> ending = std::move(process_);
  const Silence why = answered.error();
  ToolResult ended = TW_TRY(ending->end(why == Silence::Gone ? kLeaveSeconds : 0));
  OpenRun run;
  ended.timed_out = why == Silence::TimedOut;
  ended.seconds = seconds_since(begin);
  run.end = ending_of(ended);
  if (!link_.received() && why != Silence::Stopped) return refused_by_runner(why, run.end.reason);
  if (why == Silence::Nonsense) run.end = {"invalid", "its answer is none"};
  if (run.end.outcome == "ok") run.end = {"invalid", "it left no answer"};
  return run;
}

}  // namespace tilewright::fleet
