#include "tilewright/driver/tuning/fpga_launches.h"

#include <fmt/format.h>

#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/compile/fpga/layers.h"
#include "tilewright/rules/fpga/schedule.h"
#include "tilewright/tune/fpga/space.h"

namespace tilewright::driver {
namespace {

/// What `func`, with its schedule, takes. errors: what the Verilog lacks, what exceeds the device.
Result<int64_t> cycles_of(const Func& func, const hw::FpgaDevice& device) {
  const fpga::Design design = TW_TRY(compile::fpga_design(func, device));
  fpga::RunOptions options;
  options.memory = compile::memory_timing(device);
  options.values = false;
  std::vector<std::string> no_values;
  return TW_TRY(fpga::simulate(design, options, no_values)).cycles;
}

class FpgaLaunchSpace final : public LaunchSpace {
 public:
  FpgaLaunchSpace(std::unique_ptr<tune::FpgaSpace> space, Func func, hw::FpgaDevice device)
      : space_(std::move(space)), func_(std::move(func)), device_(std::move(device)) {}

  const search::Space& space() const override { return space_->space(); }
  search::Evaluation judge(const search::Point& point) const override {
    // What a model remembers is for one thread.
    const cost::FpgaModel model = space_->model(point);
    const cost::FpgaDesign design = space_->design(point);
    std::string problem = model.problem(design);
    if (problem.empty()) problem = rules::no_steps(model, design);
    if (!problem.empty()) return {search::kInvalid, problem};
    const auto cycles = [&]() -> Result<int64_t> {
      return cycles_of(TW_TRY(schedule::replay(func_, TW_TRY(space_->trace(point)))), device_);
    }();
    if (!cycles) return {search::kInvalid, cycles.error().what};
    return {static_cast<double>(*cycles), ""};
  }
  std::string schedule(const search::Point& point) const override {
    const auto trace = space_->trace(point);
    return trace ? schedule::print(*trace) : "";
  }
  std::string decisions(const search::Point& point) const override { return space().text(point); }
  std::optional<search::Point> find(const std::string& decisions) const override {
    return space().find(decisions);
  }
  std::string describe(const search::Point& point) const override {
    return to_string(space_->design(point));
  }
  RankedPoints ranked(size_t most) const override {
    const cost::FpgaModel model = space_->model(space().at(0));
    cost::FpgaSearch search = rules::steps_search(func_, model);
    search.fewer_slots = true;
    const auto best = cost::best_fpga_designs(model, search, most);
    RankedPoints ranked;
    for (const cost::FpgaBest& one : best)
      if (auto point = space_->point(one.design)) ranked.points.push_back(*std::move(point));
    if (!best.empty())
      ranked.remark = fmt::format(
          "the optimum by the model is {:.0f} cycles: it looked at {} of {:.4g} designs, bounds "
          "leave out the others; its best {} are simulated",
          best.front().time.cycles, best.front().looked_at, space().size(), ranked.points.size());
    return ranked;
  }

 private:
  std::unique_ptr<tune::FpgaSpace> space_;
  Func func_;
  hw::FpgaDevice device_;
};

/// Null: it is of another back-end.
const compile::FpgaLaunchCode* code_of(const compile::LaunchCode& launch) {
  return dynamic_cast<const compile::FpgaLaunchCode*>(launch.detail.get());
}

/// Layers that run design `i` of a launch; a program alone runs once.
size_t calls_of(const compile::LaunchCode& launch, size_t i) {
  return i < launch.kernels.size() ? launch.kernels[i].steps.size() : 1;
}

}  // namespace

Result<std::vector<LaunchTask>> fpga_launches(const compile::CompiledModel& model,
                                              const compile::CompileOptions& options) {
  const hw::FpgaDevice& device = compile::fpga_target(options.target)->device;
  std::vector<LaunchTask> tasks;
  for (const auto& [name, launch] : model.launches) {
    const compile::FpgaLaunchCode* code = code_of(launch);
    for (size_t i = 0; code != nullptr && i < code->programs.size(); ++i) {
      const compile::FpgaProgram& program = code->programs[i];
      if (!program.model) continue;
      tune::FpgaSpaceOptions limits;
      limits.as_steps = true;
      auto space = TW_TRY(tune::FpgaSpace::create(device, program.source, limits));
      LaunchTask task;
      task.name = code->programs.size() == 1 ? name : launch.kernels[i].steps.front();
      task.workload = compile::fpga_workload(program.source);
      task.target = compile::fpga_record_key(device);
      if (const auto taken = space->point(program.model->design)) task.start.push_back(*taken);
      task.space = std::make_shared<FpgaLaunchSpace>(std::move(space), program.source, device);
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

Result<double> fpga_launch_cycles(const compile::CompiledModel& model,
                                  const compile::CompileOptions& options) {
  const hw::FpgaDevice& device = compile::fpga_target(options.target)->device;
  double cycles = 0;
  for (const auto& [name, launch] : model.launches) {
    const compile::FpgaLaunchCode* code = code_of(launch);
    for (size_t i = 0; code != nullptr && i < code->programs.size(); ++i)
      cycles += static_cast<double>(calls_of(launch, i)) *
                static_cast<double>(TW_TRY(cycles_of(code->programs[i].func, device)));
  }
  return cycles;
}

}  // namespace tilewright::driver
