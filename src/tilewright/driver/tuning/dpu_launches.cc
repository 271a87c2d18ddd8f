#include "tilewright/driver/tuning/dpu_launches.h"

#include "tilewright/accel/dpu/sim/tsim.h"
#include "tilewright/compile/dpu/backend.h"
#include "tilewright/tune/dpu/space.h"

namespace tilewright::driver {
namespace {

class DpuLaunchSpace final : public LaunchSpace {
 public:
  explicit DpuLaunchSpace(std::unique_ptr<tune::DpuSpace> space) : space_(std::move(space)) {}

  const search::Space& space() const override { return space_->space(); }
  search::Evaluation judge(const search::Point& point) const override {
    return space_->judge(point);
  }
  std::string schedule(const search::Point& point) const override {
    return dpu::to_string(space_->way(point));
  }
  std::optional<search::Point> find(const std::string& schedule) const override {
    const Result<dpu::Way> way = dpu::parse_way(schedule);
    return way ? space_->point(*way) : std::nullopt;
  }
  std::string describe(const search::Point& point) const override {
    return space_->describe(point);
  }

 private:
  std::unique_ptr<tune::DpuSpace> space_;
};

}  // namespace

Result<std::vector<LaunchTask>> dpu_launches(const compile::CompiledModel& model,
                                             const compile::CompileOptions& options) {
  const dpu::Config& config = compile::dpu_target(options.target)->config;
  std::vector<LaunchTask> tasks;
  for (const auto& [name, launch] : model.launches) {
    const compile::DpuLaunchCode* code = compile::dpu_code(launch);
    if (code == nullptr) continue;
    auto space =
        TW_TRY(tune::DpuSpace::create(code->network, config, code->compiled.way.plain_strides));
    LaunchTask task;
    task.name = name;
    task.workload = compile::dpu_workload(code->network);
    task.target = tune::dpu_target_key(config);
    if (const auto taken = space->point(code->compiled.way)) task.start.push_back(*taken);
    for (const dpu::Attempt& attempt : code->compiled.attempts) {
      const auto point = space->point(attempt.way);
      if (point && attempt.why.empty() && !(attempt.way == code->compiled.way))
        task.start.push_back(*point);
    }
    task.space = std::make_shared<DpuLaunchSpace>(std::move(space));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Result<double> dpu_launch_cycles(const compile::CompiledModel& model,
                                 const compile::CompileOptions& options) {
  const dpu::Config& config = compile::dpu_target(options.target)->config;
  double cycles = 0;
  for (const auto& [name, launch] : model.launches)
    if (const compile::DpuLaunchCode* code = compile::dpu_code(launch))
      for (const dpu::Run& run : code->compiled.program.runs)
        cycles += static_cast<double>(TW_TRY(dpu::simulate_time(config, run.insns)).cycles);
  return cycles;
}

}  // namespace tilewright::driver
