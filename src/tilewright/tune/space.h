// Spaces of schedules: what a searcher walks, which schedule each point means, what a model thinks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/schedule/step.h"
#include "tilewright/search/searcher.h"

namespace tilewright::tune {

/// The schedules of one Func that a search may choose among.
class ScheduleSpace {
 public:
  virtual ~ScheduleSpace() = default;

  virtual const search::Space& space() const = 0;
  /// The schedule that `point` means. errors: NotApplicable, with the step that does not apply.
  virtual Result<schedule::Trace> trace(const search::Point& point) const = 0;
  /// Cost by the analytical model. units: ns, or cycles of a simulator; search::kInvalid for points
  /// known not to work.
  virtual double prior(const search::Point& point) const = 0;
  /// What the prior adds up, as features for learning where it errs; as many for every point.
  virtual std::vector<double> terms(const search::Point& point) const = 0;
};

/// A kernel to tune.
struct Task {
  std::string name;      ///< for people: `conv_blocked_relu`
  Func func;             ///< stage Tensor
  hw::CpuTarget target;  ///< what the schedules are for
  int threads = 1;       ///< workers the kernel runs on
  int64_t uses = 1;      ///< steps of the model that run it
  std::string device;    ///< key of an accelerator's configuration; empty: a CPU's kernel
  std::optional<hw::GpuTarget> gpu;  ///< what the schedules are for, if that is a GPU
  std::string runs_on;               ///< the GPU that measures: `opencl:0`

  /// Key of its records: equal programs, names apart, have equal keys.
  std::string key() const;
  /// `cpu:znver4@1a2b3c4d:2` (with the fingerprint of the machine), `cpu:x86-64-v3:2` for any such
  /// processor, or `device`, as in records.
  std::string target_key() const;
};

/// The program as records know it: its text, with the name `f`.
std::string workload_text(const Func& func);

/// Ours: few points, all worth a thought, ranked by the model of the machine.
std::unique_ptr<ScheduleSpace> constructive_space(const Task& task);
/// FlexTensor's: every loop split into levels, without knowledge of the operator. source:
/// FlexTensor paper, section 4.2.
std::unique_ptr<ScheduleSpace> tiling_space(const Task& task);

}  // namespace tilewright::tune
