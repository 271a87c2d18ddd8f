// The model against the cycle simulator, on random designs of C1 to C15 that steps can express.
//
// A point is drawn from the space until it fits the device and the model says that it takes no more
// cycles than can be simulated here; how many are left out for that is printed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "figures.h"
#include "programs.h"
#include "tilewright/base/rank_correlation.h"
#include "tilewright/base/rng.h"
#include "tilewright/base/statistics.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/rules/fpga/schedule.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tune/fpga/space.h"

namespace tilewright::bench {
namespace {

struct Sample {
  std::string layer;
  double model = 0, simulated = 0;
  cost::FpgaDesign design;
  double error() const { return std::abs(model / simulated - 1); }
};

struct Samples {
  std::vector<Sample> points;
  int drawn = 0, beyond_device = 0, too_long = 0;
  std::map<std::string, int> without_design;  ///< by reason
};

/// A run of a scheduled program, without values.
Result<fpga::Report> simulated(const Func& scheduled, const hw::FpgaDevice& device) {
  const fpga::Design design = TW_TRY(compile::fpga_design(scheduled, device));
  fpga::RunOptions options;
  options.memory = compile::memory_timing(device);
  options.values = false;
  std::vector<std::string> none;
  return fpga::simulate(design, options, none);
}

Samples sample(const Func& func, const hw::FpgaDevice& device, int count, double most_cycles,
               Rng& rng) {
  tune::FpgaSpaceOptions options;
  options.as_steps = true;
  const auto space = tune::FpgaSpace::create(device, func, options).value();
  Samples found;
  while (static_cast<int>(found.points.size()) < count && found.drawn < 1000 * count) {
    ++found.drawn;
    const search::Point point = space->space().random(rng);
    const search::Evaluation outcome = space->judge(point);
    if (!outcome.reason.empty()) {
      ++found.beyond_device;
      continue;
    }
    if (outcome.cost > most_cycles) {
      ++found.too_long;
      continue;
    }
    const auto run = space->trace(point)
                         .and_then([&](const auto& steps) { return schedule::replay(func, steps); })
                         .and_then([&](const Func& done) { return simulated(done, device); });
    if (!run)
      ++found.without_design[run.error().what];
    else
      found.points.push_back(
          {func.name, outcome.cost, static_cast<double>(run->cycles), space->design(point)});
  }
  return found;
}

std::vector<double> errors_of(const std::vector<Sample>& points) {
  std::vector<double> errors;
  for (const Sample& point : points) errors.push_back(100 * point.error());
  return errors;
}

void print_row(const std::string& name, const std::vector<Sample>& points, const Samples& counts) {
  std::vector<double> model, simulated;
  for (const Sample& point : points)
    model.push_back(point.model), simulated.push_back(point.simulated);
  const std::vector<double> errors = errors_of(points);
  fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.4f} |\n", name, points.size(),
             counts.too_long, quantile(errors, 0.5), quantile(errors, 0.95), quantile(errors, 1),
             rank_correlation(model, simulated));
  std::fflush(stdout);
}

struct Compared {
  double model = 0, simulated = 0;
  std::string design;
  std::vector<fpga::ProcessReport> processes;
};

Result<Compared> compare_best(const Func& func, const hw::FpgaDevice& device) {
  const auto best = TW_TRY(rules::best_fpga_schedule(func, device));
  const fpga::Report run = TW_TRY(simulated(best.func, device));
  return Compared{best.time.cycles, static_cast<double>(run.cycles), to_string(best.design),
                  run.processes};
}

/// What each process of a run did, in percent of its cycles.
void print_waits(const Compared& row) {
  for (const fpga::ProcessReport& process : row.processes) {
    fmt::print("  {}:", process.name);
    for (size_t doing = 0; doing < fpga::kDoings; ++doing)
      if (process.cycles[doing] > 0)
        fmt::print(" {} {:.1f} %", name(static_cast<fpga::Doing>(doing)),
                   100 * static_cast<double>(process.cycles[doing]) / row.simulated);
    fmt::print("\n");
  }
}

}  // namespace

int model_of_best(const Selection& selection, const std::vector<std::string>& types) {
  const hw::FpgaDevice device = hw::load_fpga_device(selection.device).value();
  fmt::print(
      "| layer | type | design | model | simulator | model off by % "
      "|\n|---|---|---|---|---|---|\n");
  std::vector<double> errors;
  int failed = 0;
  for (const std::string& type :
       types.empty() ? std::vector<std::string>{"f32", "i16", "i8"} : types)
    for (const auto& [name, conv] : yolo_convs(selection.layers)) {
      const auto row = compare_best(conv_program(name, conv, parse_dtype(type).value()), device);
      if (!row) {
        ++failed;
        fmt::print("| {} | {} | {} | | | |\n", name, type, to_string(row.error()));
        continue;
      }
      const double off = 100 * (row->model / row->simulated - 1);
      errors.push_back(std::abs(off));
      fmt::print("| {} | {} | {} | {:.0f} | {:.0f} | {:+.1f} |\n", name, type, row->design,
                 row->model, row->simulated, off);
      if (selection.details) print_waits(*row);
      std::fflush(stdout);
    }
  fmt::print("{} designs: off by {:.2f} % in median, {:.2f} % at most\n", errors.size(),
             quantile(errors, 0.5), quantile(errors, 1));
  return failed;
}

int model_accuracy(const Selection& selection) {
  const hw::FpgaDevice device = hw::load_fpga_device(selection.device).value();
  const int count = selection.count > 0 ? selection.count : 60;
  const double most = selection.limit > 0 ? selection.limit : 2e7;
  fmt::print(
      "| layer | points | left out: longer than {:.0f} million cycles | median error % | 95 % | "
      "most | rank correlation |\n|---|---|---|---|---|---|---|\n",
      most / 1e6);
  Samples all;
  std::map<std::string, int> reasons;
  for (const auto& [name, conv] : yolo_convs(selection.layers)) {
    Rng rng(selection.seed);
    const Samples found = sample(conv_program(name, conv, DType::F32), device, count, most, rng);
    print_row(name, found.points, found);
    all.points.insert(all.points.end(), found.points.begin(), found.points.end());
    all.too_long += found.too_long;
    for (const auto& [reason, times] : found.without_design) reasons[reason] += times;
  }
  print_row("all", all.points, all);
  std::sort(all.points.begin(), all.points.end(),
            [](const Sample& a, const Sample& b) { return a.error() > b.error(); });
  for (size_t i = 0; i < std::min<size_t>(8, all.points.size()); ++i)
    fmt::print("worst: {:.0f} by the model, {:.0f} in the simulator: {} {}\n", all.points[i].model,
               all.points[i].simulated, all.points[i].layer, to_string(all.points[i].design));
  for (const auto& [reason, times] : reasons)
    fmt::print("{} without a design: {}\n", times, reason);
  return 0;
}

}  // namespace tilewright::bench
