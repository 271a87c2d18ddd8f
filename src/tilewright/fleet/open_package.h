// A child that has a package open, for one run after the other (`tilewright-runner --serve`): what
// laying out its folder, confining a process and opening take is spent once.
//
// Inputs and outputs travel through a socket, so nothing is written into the folder of a child that
// runs. What comes back is a stranger's data: it is bounded and parsed, and a child that answers
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

namespace tilewright::fleet {

/// Starts a child that finds `descriptor` as 3, in a folder that `prepare` fills.
using OpenChild = std::function<Result<std::unique_ptr<ConfinedProcess>>(
    int descriptor, const ConfinedProcess::Prepare& prepare)>;

/// What became of a run.
struct OpenRun {
  ChildEnd end;                      ///< `ok`, with the rest; else why there is no answer
  nlohmann::json reply;              ///< an object with a boolean `ok`
  std::vector<std::string> outputs;  ///< as many as `reply` lists, where it says ok
};

class OpenPackage {
 public:
  /// Limits of an answer.
  static constexpr size_t kMostReply = 256 << 10, kMostOutputs = 4096;
  static constexpr size_t kMostOutputBytes = size_t{1} << 30;

  /// `prepare` puts model.twm and job.json into the child's folder. errors: its, and the child's.
  static Result<std::unique_ptr<OpenPackage>> start(const OpenChild& child,
                                                    const ConfinedProcess::Prepare& prepare);
  ~OpenPackage();

  /// One run, to its end, its limit, or until `stop` is true: then `end` is a crash, which means
  /// nothing. `job`: `warmup`, `runs`, `seconds`. After an answer that is not ok in `end` the child
  /// has ended. errors: those of the sandbox.
  Result<OpenRun> run(nlohmann::json job, const std::vector<std::string>& inputs, double limit_s,
                      const std::function<bool()>& stop);
  /// Whether it takes another run.
  bool alive() const { return process_ != nullptr; }

 private:
  OpenPackage() = default;

  int socket_ = -1;
  std::unique_ptr<ConfinedProcess> process_;
};

}  // namespace tilewright::fleet
