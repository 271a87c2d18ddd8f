#include "tilewright/driver/tuning/spatial_layers.h"

#include <fmt/format.h>

#include "tilewright/accel/spatial/sim/tsim.h"
#include "tilewright/compile/spatial/backend.h"
#include "tilewright/tune/spatial/space.h"

namespace tilewright::driver {
namespace {

class SpatialLayerSpace final : public LaunchSpace {
 public:
  explicit SpatialLayerSpace(std::unique_ptr<tune::SpatialSpace> space)
      : space_(std::move(space)) {}

  const search::Space& space() const override { return space_->space(); }
  search::Evaluation judge(const search::Point& point) const override {
    // What a judge remembers is for one thread; a fresh one takes some ten microseconds more.
    return tune::SpatialJudge(*space_).judge(point);
  }
  std::string schedule(const search::Point& point) const override {
    return space_->schedule(point);
  }
  std::optional<search::Point> find(const std::string& schedule) const override {
    return space_->find(schedule);
  }
  std::string describe(const search::Point& point) const override { return schedule(point); }

 private:
  std::unique_ptr<tune::SpatialSpace> space_;
};

const compile::SpatialLaunchCode* spatial_code_of(const compile::LaunchCode& launch) {
  return dynamic_cast<const compile::SpatialLaunchCode*>(launch.detail.get());
}

}  // namespace

Result<std::vector<LaunchTask>> spatial_layers(const compile::CompiledModel& model,
                                               const compile::CompileOptions& options) {
  const spatial::Design& design = compile::spatial_target(options.target)->design;
  std::vector<LaunchTask> tasks;
  for (const auto& [name, launch] : model.launches) {
    const compile::SpatialLaunchCode* code = spatial_code_of(launch);
    if (code == nullptr) continue;
    for (size_t i = 0; i < code->network.layers.size(); ++i) {
      const spatial::LayerPlan& plan = code->compiled.layers[i];
      const cost::SpatialLayer layer =
          spatial::run_of(code->network, code->network.layers[i], 0, *plan.input, *plan.output);
      auto space = TW_TRY(tune::SpatialSpace::create(design, layer));
      LaunchTask task;
      task.name = plan.name;
      task.workload = spatial::workload_of(layer);
      task.target = tune::spatial_target_key(design);
      if (const auto taken = space->find(plan.mapping)) task.start.push_back(*taken);
      task.space = std::make_shared<SpatialLayerSpace>(std::move(space));
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

Result<double> spatial_cycles(const compile::CompiledModel& model,
                              const compile::CompileOptions& options) {
  const spatial::Design& design = compile::spatial_target(options.target)->design;
  double cycles = 0;
  for (const auto& [name, launch] : model.launches)
    if (const compile::SpatialLaunchCode* code = spatial_code_of(launch))
      for (const spatial::Run& run : code->compiled.program.runs)
        cycles += static_cast<double>(TW_TRY(spatial::simulate_time(design, run.insns)).cycles);
  return cycles;
}

}  // namespace tilewright::driver
