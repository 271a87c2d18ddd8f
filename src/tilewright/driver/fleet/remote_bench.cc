#include "tilewright/driver/fleet/remote_bench.h"

#include <fmt/format.h>

#include "tilewright/base/statistics.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/fleet/device_need.h"

namespace tilewright::driver {
namespace {

/// Runs there before any is timed: they load code and weights.
constexpr int kWarmup = 3;
constexpr int kLeastRuns = 3;

/// The subjects as packages for one device, timed there.
Status bench_on(const SubjectOptions& options, const WorkerChoice& choice,
                const std::string& worker, double seconds, const std::string& command,
                std::vector<std::vector<std::string>>& rows, nlohmann::ordered_json& json) {
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  RemoteDevice device = TW_TRY(find_remote(choice, worker, options.records, package_need(options)));
  const SubjectOptions there = TW_TRY(for_device(options, device, folder));
  for (const Subject& subject : TW_TRY(load_subjects(there))) {
    const RemotePackage package = TW_TRY(remote_package(subject, there, device, folder));
    const std::map<std::string, Array> inputs = TW_TRY(make_inputs(
        package.inputs, TW_TRY(parse_input_specs(there.inputs)), there.seed, there.files));
    const fleet::RemoteResult result =
        TW_TRY(run_remote(device, package, inputs, there, {kWarmup, kLeastRuns, seconds}, command));
    nlohmann::ordered_json row = {{"subject", subject.name}};
    std::vector<std::string> line = {subject.name, result.device};
    for (const auto& [name, share] :
         {std::pair{"p50", .5}, std::pair{"p10", .1}, std::pair{"p90", .9}}) {
      const double ms = quantile(result.run_ns, share) / 1e6;
      row["compute_ms"][name] = ms;
      line.push_back(fmt::format("{:.4g}", ms));
    }
    line.push_back(fmt::to_string(result.run_ns.size()));
    row["runs"] = result.run_ns.size();
    row.update(remote_json(result));
    json["rows"].push_back(row);
    rows.push_back(line);
  }
  return {};
}

}  // namespace

Result<int> bench_remotely(const SubjectOptions& options, const WorkerChoice& choice,
                           double seconds, const std::string& command, bool as_json) {
  nlohmann::ordered_json json = document("bench");
  std::vector<std::vector<std::string>> rows = {
      {"subject", "device", "median ms", "p10", "p90", "runs"}};
  for (const std::string& worker : choice.workers)
    TW_TRY_STATUS(bench_on(options, choice, worker, seconds, command, rows, json));
  if (as_json)
    print_json(json);
  else
    fmt::print("{}", table(rows));
  return 0;
}

}  // namespace tilewright::driver
