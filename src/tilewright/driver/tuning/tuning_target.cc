#include "tilewright/driver/tuning/tuning_target.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/driver/tuning/dpu_launches.h"
#include "tilewright/driver/tuning/fpga_launches.h"
#include "tilewright/driver/tuning/gpu_kernel.h"
#include "tilewright/driver/tuning/gpu_tasks.h"
#include "tilewright/driver/tuning/spatial_layers.h"
#include "tilewright/driver/tuning/vta_tasks.h"
#include "tilewright/rules/fpga/operand_type.h"
#include "tilewright/rules/vta/mapping_space.h"

namespace tilewright::driver {
namespace {

Status gpu_ready(const compile::CompileOptions& options, const SubjectOptions& subject) {
  TW_TRY(gpu_for(*options.target.gpu(), subject.device));
  return {};
}

measure::MeasureOptions cpu_measuring(const compile::CompileOptions&) {
  measure::MeasureOptions measure;
  measure.workers = measure::processor_workers();
  return measure;
}

/// Devices start slowly.
measure::MeasureOptions gpu_measuring(const compile::CompileOptions&) {
  measure::MeasureOptions measure;
  measure.limit_seconds = 20;
  return measure;
}

/// NVRTC compiles one program at a time in a process.
measure::MeasureOptions cuda_measuring(const compile::CompileOptions& options) {
  measure::MeasureOptions measure = gpu_measuring(options);
  measure.workers = std::clamp(hw::host().cores / 2, 2, 8);
  return measure;
}

Result<TunePlan> vta_plan(std::vector<Subject> subjects, const SubjectOptions&,
                          const compile::CompileOptions& options, const PlanLimits&) {
  return plan_layers(std::move(subjects), options);
}

const TuningTarget kTargets[] = {
    {.backend = "cpu", .measuring = cpu_measuring, .plan = plan_tuning},
    {.backend = "opencl",
     .ready = gpu_ready,
     .measuring = gpu_measuring,
     .plan = plan_gpu_tuning,
     .duel = duel_on_gpu},
    {.backend = "cuda",
     .ready = gpu_ready,
     .measuring = cuda_measuring,
     .plan = plan_gpu_tuning,
     .duel = duel_on_gpu},
    {.backend = "vta",
     .unit = "kcycles",
     .large_unit = "Mcycles",
     .simulated = true,
     .own_space = rules::kVtaSpace,
     .plan = vta_plan,
     .tuning = layer_tuning,
     .cost = launch_cycles},
    {.backend = "dpu",
     .unit = "kcycles",
     .large_unit = "Mcycles",
     .simulated = true,
     .launches = dpu_launches,
     .cost = dpu_launch_cycles},
    {.backend = "spatial",
     .unit = "kcycles",
     .large_unit = "Mcycles",
     .simulated = true,
     .launches = spatial_layers,
     .cost = spatial_cycles},
    {.backend = "fpga",
     .unit = "kcycles",
     .large_unit = "Mcycles",
     .simulated = true,
     .launches = fpga_launches,
     .ranks = true,
     .in_type = rules::with_operands,
     .cost = fpga_launch_cycles},
};

}  // namespace

namespace {

const TuningTarget* find_row(const hw::Target& target) {
  for (const TuningTarget& row : kTargets)
    if (row.backend == target.backend) return &row;
  return nullptr;
}

}  // namespace

Status check_tunable(const hw::Target& target) {
  if (find_row(target) != nullptr) return {};
  std::vector<std::string_view> names;
  for (const TuningTarget& row : kTargets) names.push_back(row.backend);
  return fail(ErrorKind::Unsupported, fmt::format("code for {} is not tuned", target.name),
              fmt::format("tune has spaces for {}", fmt::join(names, ", ")),
              "compile chooses its code without measuring");
}

bool plans_launch(const records::Record& record) {
  for (const TuningTarget& row : kTargets)
    if (row.launches != nullptr && record.target.starts_with(std::string(row.backend) + ":"))
      return true;
  return false;
}

const TuningTarget& tuning_target(const hw::Target& target) {
  const TuningTarget* row = find_row(target);
  TW_CHECK(row != nullptr, "no tuning for {}", target.backend);
  return *row;
}

}  // namespace tilewright::driver
