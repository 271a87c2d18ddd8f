#include "tilewright/driver/profile_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/driver/cli.h"

namespace tilewright::driver {
namespace {

using Json = nlohmann::ordered_json;

double mean_ns(const runtime::StepProfile& step) {
  return static_cast<double>(step.total_ns) / static_cast<double>(std::max<int64_t>(step.calls, 1));
}

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// A row of the report; the total is one too.
struct Line {
  double ns = 0, limit_ns = 0, operations = 0;
  int64_t bytes = 0;

  void add(const Line& other) {
    ns += other.ns;
    limit_ns += other.limit_ns;
    operations += other.operations;
    bytes += other.bytes;
  }
};

Line line_of(const runtime::StepProfile& step, const StepLimit& limit) {
  return {mean_ns(step), limit.ns(), limit.operations, limit.bytes};
}

Json json_of(const Line& line) {
  return {{"mean_us", line.ns / 1e3},
          {"limit_us", line.limit_ns / 1e3},
          {"of_limit", share_of(line.limit_ns, line.ns)},
          {"operations", line.operations},
          {"gops", share_of(line.operations, line.ns)},
          {"bytes", line.bytes}};
}

std::vector<std::string> cells(const Line& line, double total_ns) {
  return {fmt::format("{:.1f}", line.ns / 1e3),
          fmt::format("{:.1f} %", 100 * share_of(line.ns, total_ns)),
          fmt::format("{:.1f}", line.limit_ns / 1e3),
          fmt::format("{:.0f} %", 100 * share_of(line.limit_ns, line.ns)),
          fmt::format("{:.1f}", share_of(line.operations, line.ns)),
          fmt::format("{:.3f}", static_cast<double>(line.bytes) / 1e6)};
}

}  // namespace

Json profile_json(const std::vector<runtime::StepProfile>& steps,
                  const std::vector<StepLimit>& limits) {
  Json json;
  Line total;
  json["steps"] = Json::array();
  for (size_t i = 0; i < steps.size(); ++i) {
    const Line line = line_of(steps[i], limits[i]);
    total.add(line);
    Json row{{"step", steps[i].name}, {"kernel", steps[i].callee}, {"calls", steps[i].calls}};
    row.update(json_of(line));
    row["min_us"] = static_cast<double>(steps[i].min_ns) / 1e3;
    row["bound"] = limits[i].bound;
    if (!limits[i].algorithm.empty()) row["algorithm"] = limits[i].algorithm;
    row["compute_us"] = limits[i].compute_ns / 1e3;
    row["memory_us"] = limits[i].memory_ns / 1e3;
    for (int level = 0; level < 4; ++level)
      row["bytes_from"][kMemoryLevels[level]] = limits[i].from[level];
    json["steps"].push_back(std::move(row));
  }
  json["total"] = json_of(total);
  return json;
}

std::string profile_table(const std::vector<runtime::StepProfile>& steps,
                          const std::vector<StepLimit>& limits) {
  Line total;
  for (size_t i = 0; i < steps.size(); ++i) total.add(line_of(steps[i], limits[i]));
  std::vector<std::vector<std::string>> rows = {
      {"step", "kernel", "us", "share", "limit us", "of limit", "Gop/s", "MB", "bound"}};
  const auto add = [&](const std::string& step, const std::string& callee, const Line& line,
                       const std::string& bound) {
    rows.push_back({step, callee});
    for (std::string& cell : cells(line, total.ns)) rows.back().push_back(std::move(cell));
    rows.back().push_back(bound);
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepLimit& limit = limits[i];
    const std::string note =
        limit.algorithm.empty() ? "" : fmt::format(" ({}, counted as direct)", limit.algorithm);
    add(steps[i].name, steps[i].callee, line_of(steps[i], limit), limit.bound + note);
  }
  add("total", "", total, "");
  return table(rows);
}

}  // namespace tilewright::driver
