// Spaces of schedules: what a searcher walks, which schedule each point means, what a model thinks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/measure/task.h"
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

/// Ours: few points, all worth a thought, ranked by the model of the machine.
std::unique_ptr<ScheduleSpace> constructive_space(const measure::Task& task);
/// FlexTensor's: every loop split into levels, without knowledge of the operator. source:
/// FlexTensor paper, section 4.2.
std::unique_ptr<ScheduleSpace> tiling_space(const measure::Task& task);

}  // namespace tilewright::tune
