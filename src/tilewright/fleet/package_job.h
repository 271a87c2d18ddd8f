// A job of kind `run`: a package, its inputs, and what a worker does with them.
//
// The submitter sends pieces of the package, the inputs as .npy files and how often to run. The
// worker lays them out in a folder, starts a child there (`tilewright-runner FOLDER`), and sends
// back the outputs and `result.json`:
//
//   model.twm  inputs/0.npy  inputs/1.npy  job.json      ->      outputs/0.npy  result.json
//
// Where the runner can keep a package open (open_package.h), the child stays for further runs of
// the same package by the same login.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/process.h"
#include "tilewright/fleet/job_server.h"
#include "tilewright/fleet/open_package.h"

namespace tilewright::fleet {

/// How a package is to be run.
struct PackageRun {
  std::string device;               ///< of the package: `cpu`, `vta:tsim`; empty: the fastest
  int threads = 0;                  ///< 0: all that the worker has
  int warmup = 0, runs = 1;         ///< runs that are not timed, and that are
  double seconds = 0;               ///< timed runs go on for so long
  std::vector<std::string> pieces;  ///< of the package, by hash, in order
  std::vector<std::string> inputs;  ///< .npy files, by hash; in the order of the inputs
};
nlohmann::json to_json(const PackageRun& run);
/// errors: Package, with what is missing or beyond its limits.
Result<PackageRun> package_run_of(const nlohmann::json& json);

/// What a worker lends to a job.
struct JobTools {
  std::function<Status(const std::string& sha256, const std::string& path)> append;
  std::function<Status(const std::string& sha256, std::string_view bytes)> put;
  /// Runs the child on a folder, to its end or to the job's limit.
  std::function<Result<ToolResult>(const std::string& folder, double limit_s)> child;
};

/// Runs one job. What goes wrong in the package or its child is an outcome of the item.
/// errors: Package (the job cannot be run by anyone: damaged blobs, a payload that is none), Io,
/// those of the tools.
Result<ItemResult> run_package_job(const LeasedJob& job, const JobTools& tools);

/// Runs the child of a job on a folder: to its end, its limit, or until `stop` is true.
using RunChild = std::function<Result<ToolResult>(const std::string& folder, double limit_s,
                                                  const std::function<bool()>& stop)>;
/// Whether a worker runs such a job; `payload`: what it read of the job, written anew.
/// errors: the job fails for that reason.
using AllowJob = std::function<Status(const LeasedJob& job, const std::string& payload)>;
/// Does jobs of kind `run`. Without `allow`, everybody's. `open`: starts children that keep a
/// package open; without one every job has a child of its own, by `child`.
std::unique_ptr<JobServer> package_server(RunChild child, AllowJob allow = {},
                                          PackageOpener open = {});

}  // namespace tilewright::fleet
