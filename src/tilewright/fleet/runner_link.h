// Talking to `tilewright-runner --serve`: see runner/main/serve.cc for what is said.
//
// Nothing that comes back is believed, since the package's code runs in the same process: answers
// have a limited size and are parsed as a stranger's.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::fleet {

/// Why there is no answer.
enum class Silence {
  Stopped,
  TimedOut,
  Gone,          ///< it has ended, or closed its side
  Nonsense,      ///< what came is none
  OtherVersion,  ///< it is another version of the runner, or another program
};

struct RunnerAnswer {
  nlohmann::json reply;              ///< an object with a boolean `ok`
  std::vector<std::string> outputs;  ///< as many as `reply` lists, where it says ok
};

class RunnerLink {
 public:
  /// Limits of an answer.
  static constexpr size_t kMostReply = 256 << 10, kMostOutputs = 4096;
  static constexpr size_t kMostOutputBytes = size_t{1} << 30;

  /// Takes both descriptors, which may be one. Writing where nobody reads is an error of this
  /// process from now on, and no signal.
  RunnerLink(int to, int from);
  ~RunnerLink();
  RunnerLink(RunnerLink&& other) noexcept;
  RunnerLink& operator=(RunnerLink&&) = delete;

  /// A package for a runner that serves a stream: it goes before the first request. `how`: as
  /// job.json has it.
  void give(nlohmann::json how, std::string package);
  /// One run, until it is answered, `limit_s` are over, or `stop` is true. `job`: `warmup`, `runs`,
  /// `seconds`. After a Silence nothing more is to be asked.
  tl::expected<RunnerAnswer, Silence> ask(nlohmann::json job,
                                          const std::vector<std::string>& inputs, double limit_s,
                                          const std::function<bool()>& stop);
  /// Whether it has said that the package is there: before that, none of its code has run.
  bool received() const { return received_; }

 private:
  int to_ = -1, from_ = -1;
  std::string given_;  ///< what is still to be sent of `give`
  bool received_ = true;
};

/// The error of a runner that did not take the package. `end`: what is known of how it ended.
tl::unexpected<Error> refused_by_runner(Silence why, const std::string& end);

}  // namespace tilewright::fleet
