#include "tilewright/driver/report/gpu_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/driver/cli.h"
#include "tilewright/rules/common/work.h"

namespace tilewright::driver {
namespace {

using Json = nlohmann::ordered_json;

/// Operations of each group of a launch, by name.
std::map<std::string, double> operations_of(const compile::LaunchCode& code) {
  std::map<std::string, double> operations;
  for (const compile::KernelReport& kernel : code.kernels)
    for (const std::string& step : kernel.steps)
      operations[step] = rules::work_of(kernel.func).operations;
  return operations;
}

double limit_of(const GpuStepTime& step, const hw::GpuTarget& target) {
  if (!target.rates.known) return 0;
  return std::max(step.operations / target.rates.f32,
                  static_cast<double>(step.bytes) / target.rates.dram);
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

GpuStepTime total_of(const std::vector<GpuStepTime>& steps) {
  GpuStepTime total;
  total.step = "total";
  for (const GpuStepTime& step : steps) {
    total.ns += step.ns;
    total.operations += step.operations;
    total.bytes += step.bytes;
    total.limit_ns += step.limit_ns;
  }
  return total;
}

Json json_of(const GpuStepTime& step) {
  Json json = {{"step", step.step}, {"mean_us", step.ns / 1e3}, {"bytes", step.bytes}};
  if (!step.launch.empty()) json["launch"] = step.launch;
  if (!step.kernels.empty()) json["kernels"] = step.kernels;
  if (step.operations > 0) {
    json["operations"] = step.operations;
    json["gops"] = ratio(step.operations, step.ns);
  }
  if (step.limit_ns > 0) {
    json["limit_us"] = step.limit_ns / 1e3;
    json["of_limit"] = ratio(step.limit_ns, step.ns);
  }
  return json;
}

}  // namespace

std::vector<GpuStepTime> gpu_step_times(const compile::LaunchLog& log,
                                        const std::map<std::string, compile::LaunchCode>& launches,
                                        const hw::GpuTarget* target) {
  std::vector<GpuStepTime> steps;
  for (const auto& [name, record] : log.entries) {
    const auto code = launches.find(name);
    const std::map<std::string, double> operations =
        code != launches.end() ? operations_of(code->second) : std::map<std::string, double>();
    const std::vector<compile::CallTime> calls = record->calls();
    std::set<int> used;  // buffers of the step so far
    for (size_t i = 0; i < calls.size(); ++i) {
      const compile::CallTime& call = calls[i];
      if (i == 0 || call.step != calls[i - 1].step) {
        used.clear();
        steps.push_back({name, call.step, {}, 0, 0, 0, 0});
        if (const auto it = operations.find(call.step); it != operations.end())
          steps.back().operations = it->second;
      }
      GpuStepTime& step = steps.back();
      step.kernels.push_back(call.kernel);
      step.ns += call.ns;
      for (const auto& [buffer, bytes] : call.buffers)
        if (used.insert(buffer).second) step.bytes += bytes;
    }
  }
  if (target != nullptr)
    for (GpuStepTime& step : steps) step.limit_ns = limit_of(step, *target);
  return steps;
}

GpuProfile gpu_profile(const compile::LaunchLog& log,
                       const std::map<std::string, compile::LaunchCode>& launches,
                       const hw::GpuTarget* target) {
  GpuProfile profile{gpu_step_times(log, launches, target), 0};
  for (const auto& [name, record] : log.entries) profile.run_ns += record->run_ns();
  return profile;
}

Json gpu_profile_json(const GpuProfile& profile) {
  Json json = {{"steps", Json::array()},
               {"total", json_of(total_of(profile.steps))},
               {"run_us", profile.run_ns / 1e3}};
  for (const GpuStepTime& step : profile.steps) json["steps"].push_back(json_of(step));
  return json;
}

std::string gpu_profile_table(const GpuProfile& profile) {
  std::vector<std::vector<std::string>> rows = {
      {"step on the GPU", "kernels", "us", "share", "Gop/s", "MB", "GB/s", "of limit"}};
  const GpuStepTime total = total_of(profile.steps);
  const auto add = [&](const GpuStepTime& step) {
    std::string kernels = step.kernels.empty() ? "" : step.kernels.front();
    if (step.kernels.size() > 1) kernels += fmt::format(" and {} more", step.kernels.size() - 1);
    const auto bytes = static_cast<double>(step.bytes);
    rows.push_back(
        {step.step, kernels, fmt::format("{:.1f}", step.ns / 1e3),
         fmt::format("{:.1f} %", 100 * ratio(step.ns, total.ns)),
         step.operations > 0 ? fmt::format("{:.1f}", ratio(step.operations, step.ns)) : "",
         fmt::format("{:.3f}", bytes / 1e6), fmt::format("{:.1f}", ratio(bytes, step.ns)),
         step.limit_ns > 0 ? fmt::format("{:.0f} %", 100 * ratio(step.limit_ns, step.ns)) : ""});
  };
  for (const GpuStepTime& step : profile.steps) add(step);
  add(total);
  rows.push_back({"whole run", "without events between them",
                  fmt::format("{:.1f}", profile.run_ns / 1e3), "", "", "", "", ""});
  return table(rows);
}

}  // namespace tilewright::driver
