// A child that has a package open, for one run after the other (`tilewright-runner --serve`): what
// laying out its folder, confining a process and opening take is spent once.
//
// Inputs and outputs travel through descriptors, so nothing is written into the folder of a child
// that runs. Where the child is on another machine (`runner:CMD`) the package does, too. What comes
// back is a stranger's data: it is bounded and parsed (runner_link.h), and a child that answers
// with anything else is ended.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/fleet/confined_process.h"
#include "tilewright/fleet/runner_link.h"

namespace tilewright::fleet {

/// Starts a child that reads requests from `input` and writes replies to `answers`, in a folder
/// that `prepare` fills.
using OpenChild = std::function<Result<std::unique_ptr<ConfinedProcess>>(
    int input, int answers, const ConfinedProcess::Prepare& prepare)>;
/// How a device keeps packages open; without a child it does not.
struct PackageOpener {
  OpenChild child;
  bool by_stream = false;  ///< the package goes before the requests; else it is in the folder
};

/// What became of a run.
struct OpenRun {
  ChildEnd end;                      ///< `ok`, with the rest; else why there is no answer
  nlohmann::json reply;              ///< an object with a boolean `ok`
  std::vector<std::string> outputs;  ///< as many as `reply` lists, where it says ok
};

class OpenPackage {
 public:
  /// `prepare` puts model.twm and job.json into the child's folder; `input` and `answers` of the
  /// child are one socket. errors: its, and the child's.
  static Result<std::unique_ptr<OpenPackage>> start(const OpenChild& child,
                                                    const ConfinedProcess::Prepare& prepare);
  /// The package is sent with the first run. `how`: as job.json has it. errors: the child's.
  static Result<std::unique_ptr<OpenPackage>> start_by_stream(const OpenChild& child,
                                                              nlohmann::json how,
                                                              std::string package);

  /// One run, to its end, its limit, or until `stop` is true: then `end` is a crash, which means
  /// nothing. `job`: `warmup`, `runs`, `seconds`. After an answer that is not ok in `end` the child
  /// has ended. errors: those of the sandbox; Device, Limit (the child did not take the package, so
  /// this says nothing of it).
  Result<OpenRun> run(nlohmann::json job, const std::vector<std::string>& inputs, double limit_s,
                      const std::function<bool()>& stop);
  /// Whether it takes another run.
  bool alive() const { return process_ != nullptr; }

 private:
  OpenPackage(RunnerLink link, std::unique_ptr<ConfinedProcess> process)
      : link_(std::move(link)), process_(std::move(process)) {}

  RunnerLink link_;
  std::unique_ptr<ConfinedProcess> process_;
};

}  // namespace tilewright::fleet
