#include "tilewright/driver/report/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tilewright/base/stopwatch.h"
#include "tilewright/driver/cli.h"

namespace tilewright::driver {
namespace {

using Json = nlohmann::ordered_json;

/// requires: not empty.
double median_ns(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
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

Line line_of(const ProfiledStep& step, const StepLimit& limit) {
  return {step.ns, limit.ns(), limit.operations, limit.bytes};
}

Json json_of(const Line& line) {
  return {{"us", line.ns / 1e3},
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

Line total_of(const std::vector<ProfiledStep>& steps, const std::vector<StepLimit>& limits) {
  Line total;
  for (size_t i = 0; i < steps.size(); ++i) total.add(line_of(steps[i], limits[i]));
  return total;
}

}  // namespace

double clock_ns() {
  std::vector<int64_t> times;
  for (int i = 0; i < 101; ++i) {
    constexpr int kReadings = 20;
    const int64_t start = now_ns();
    int64_t end = start;
    for (int k = 0; k < kReadings; ++k) end = now_ns();
    times.push_back((end - start) / kReadings);
  }
  return median_ns(std::move(times));
}

void StepTimes::add(const std::vector<int64_t>& run) {
  for (size_t i = 0; i < times_.size(); ++i) times_[i].push_back(run[i]);
}

void StepTimes::add(const runtime::Session& session) {
  const std::vector<runtime::StepProfile>& steps = session.profile();
  for (size_t i = 0; i < times_.size(); ++i) times_[i].push_back(steps[i].last_ns);
}

std::vector<double> StepTimes::medians() const {
  std::vector<double> result;
  for (const std::vector<int64_t>& times : times_)
    result.push_back(times.empty() ? 0 : std::max(0.0, median_ns(times) - clock_));
  return result;
}

Json profile_json(const std::vector<ProfiledStep>& steps, const std::vector<StepLimit>& limits,
                  double latency_ns) {
  Json json;
  json["steps"] = Json::array();
  for (size_t i = 0; i < steps.size(); ++i) {
    Json row{{"step", steps[i].step}, {"kernel", steps[i].kernel}};
    row.update(json_of(line_of(steps[i], limits[i])));
    row["bound"] = limits[i].bound;
    if (!limits[i].algorithm.empty()) row["algorithm"] = limits[i].algorithm;
    row["compute_us"] = limits[i].compute_ns / 1e3;
    row["memory_us"] = limits[i].memory_ns / 1e3;
    for (int level = 0; level < 4; ++level)
      row["bytes_from"][kMemoryLevels[level]] = limits[i].from[level];
    json["steps"].push_back(std::move(row));
  }
  const Line total = total_of(steps, limits);
  json["kernels"] = json_of(total);
  json["between_us"] = (latency_ns - total.ns) / 1e3;
  json["latency_us"] = latency_ns / 1e3;
  return json;
}

std::string profile_table(const std::vector<ProfiledStep>& steps,
                          const std::vector<StepLimit>& limits, double latency_ns) {
  std::vector<std::vector<std::string>> rows = {
      {"step", "kernel", "median us", "share", "limit us", "of limit", "Gop/s", "MB", "bound"}};
  const auto add = [&](const std::string& step, const std::string& kernel, const Line& line,
                       const std::string& bound) {
    rows.push_back({step, kernel});
    for (std::string& cell : cells(line, latency_ns)) rows.back().push_back(std::move(cell));
    rows.back().push_back(bound);
  };
  const auto add_time = [&](const std::string& what, double ns) {
    rows.push_back({what, "", fmt::format("{:.1f}", ns / 1e3),
                    fmt::format("{:.1f} %", 100 * share_of(ns, latency_ns)), "", "", "", "", ""});
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepLimit& limit = limits[i];
    const std::string note =
        limit.algorithm.empty() ? "" : fmt::format(" ({}, counted as direct)", limit.algorithm);
    add(steps[i].step, steps[i].kernel, line_of(steps[i], limit), limit.bound + note);
  }
  const Line total = total_of(steps, limits);
  add("all kernels", "", total, "");
  add_time("between kernels", latency_ns - total.ns);
  add_time("latency", latency_ns);
  return table(rows);
}

}  // namespace tilewright::driver
