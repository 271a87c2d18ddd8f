// The constructive space: what each rule for schedules leaves open, as decisions with few values,
// ranked by the model of the machine. `constructive_space` itself is declared in space.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/cost/prediction.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// What leaving a rule's own value costs where the model sees no difference: a share of the time.
inline constexpr double kDoubt = 0.01;

/// The decisions of one rule for one Func. Values are indices into the tables of `decisions`.
class RuleSpace {
 public:
  virtual ~RuleSpace() = default;

  /// `tiles`, `winograd`, ...
  virtual std::string name() const = 0;
  /// Parents are indices into the same list. The first value of each is what the rule itself takes
  /// where the model sees no difference.
  virtual std::vector<search::Decision> decisions() const = 0;
  /// errors: NotApplicable.
  virtual Result<schedule::Trace> trace(const search::Point& values) const = 0;
  /// Absent for values known not to work together. units: ns; all zero without a model.
  virtual std::optional<cost::Prediction> time(const search::Point& values) const = 0;
};

/// Register tile, order and blocks of the loops around it, prefetching, steps written out, pieces
/// for threads: of the contraction with most work, in dot products where the target has them. Null
/// for Funcs without one, and for those that another rule takes whole.
std::unique_ptr<RuleSpace> tile_rule_space(const measure::Task& task);
/// Strips of tiles and groups of filters of a Winograd convolution; null for other Funcs.
std::unique_ptr<RuleSpace> winograd_rule_space(const measure::Task& task);

/// Pieces for threads and registers filled at a time: of everything else (rows, element-wise,
/// copies).
std::unique_ptr<RuleSpace> grain_rule_space(const measure::Task& task);

/// A decision over numbers (0: `auto`) whose moves go up and down by size, whatever the order of
/// the table.
search::Decision number_decision(const std::string& name, const std::vector<int64_t>& numbers);

}  // namespace tilewright::tune
