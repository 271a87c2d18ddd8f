// The mappings of a layer onto VTA as a space: for searchers, whose measure is the simulator's
// cycles.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/measure/evaluator.h"
#include "tilewright/rules/vta/mapping_space.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// Schedules by the mappings of rules::MappingSpace.
class VtaSpace : public ScheduleSpace {
 public:
  /// errors: Unsupported (as vta_layer), Capacity (nothing fits).
  static Result<std::unique_ptr<VtaSpace>> create(const Func& func, const vta::Config& config,
                                                  const rules::MappingOptions& options = {});

  const search::Space& space() const override { return mappings_.space(); }
  Result<schedule::Trace> trace(const search::Point& point) const override;
  double prior(const search::Point& point) const override;
  std::vector<double> terms(const search::Point& point) const override;

  const rules::MappingSpace& mappings() const { return mappings_; }

 private:
  VtaSpace(Func func, rules::MappingSpace mappings)
      : func_(std::move(func)), mappings_(std::move(mappings)) {}

  Func func_;
  rules::MappingSpace mappings_;
};

/// The cycles of the simulator for schedules of `func`. Exact: every reading is the only one.
std::unique_ptr<measure::Evaluator> cycles_evaluator(const Func& func, const vta::Config& config,
                                                     int copies);

/// `vta:` and a hash of everything in `config` that programs or their times depend on.
std::string vta_target_key(const vta::Config& config);

}  // namespace tilewright::tune
