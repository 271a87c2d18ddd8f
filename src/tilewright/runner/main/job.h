// What tilewright-runner is asked to do: the file job.json of its folder.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/result.h"

namespace tilewright::runner {

/// Times that result.json can list. A fleet keeps 64 KiB of an answer (fleet/schema/0006_post.sql):
/// that many, of 10 digits each, take 47.
inline constexpr int kMostRuns = 4'000;

struct RunnerJob {
  std::string device;    ///< `opencl:0`, as the C interface takes it; empty or `cpu`: its default
  int threads = 0;       ///< 0: all CPUs that the process may use
  int warmup = 0;        ///< runs before those that are timed
  int runs = 1;          ///< timed runs, at least
  double seconds = 0;    ///< timed runs go on for so long, up to kMostRuns of them
  bool profile = false;  ///< whether the times of the steps are told too
};

/// A JSON object with any of the fields of RunnerJob. errors: Invalid (no such object, another
/// field, a value that is none of its type or beyond its limits).
Result<RunnerJob> parse_job(std::string_view text);

}  // namespace tilewright::runner
