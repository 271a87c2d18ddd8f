// A folder with a package and its inputs, run: see run.cc. And what serve.cc does in the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/base/result.h"
#include "tilewright/runner/main/job.h"
#include "tilewright/runner/main/session.h"

namespace tilewright::runner {

using Json = nlohmann::ordered_json;

/// Runs what lies in `folder` and leaves outputs and result.json there. Returns the exit status: 0,
/// or what enum tw_code has for the error that result.json and stderr tell. errors: Io (result.json
/// cannot be written).
Result<int> run_folder(const std::string& folder);

/// Opens model.twm of a folder. `open_ms`: the time that this took. errors: those of the runtime;
/// Unsupported (an output that no .npy file holds).
Result<PackageSession> open_package(const std::string& folder, const RunnerJob& job,
                                    double& open_ms);

struct Times {
  int64_t first_ns = 0;
  std::vector<int64_t> run_ns;
};
/// Runs a session, whose inputs are set, as often as the job says.
Result<Times> run_times(PackageSession& session, const RunnerJob& job);

/// Name, type and shape of an output, as result.json has them.
Json describe_output(const PackageSession& session, size_t index, const Array& value);

/// What went wrong, as result.json has it.
struct JobFailure {
  int code = TW_INTERNAL;
  const char* kind = "internal";
  std::string text;
};
JobFailure failure_of(const Error& error);
Json failure_json(const JobFailure& failure);
/// Does a job; nothing is thrown.
tl::expected<Json, JobFailure> guarded(const std::function<Result<Json>()>& job);

}  // namespace tilewright::runner
