// Levels of fidelity: the model of costs, which judges every design, and what is closer to hardware
// and slower, which looks again at the best ones. A level knows how many cycles a layer takes, or
// how large a design is; the rest stays as the levels below say. Accesses and so energies of events
// are always the model's, whose counts are exact.
//
// Example: `at_level(tsim_level(), evaluator, config, evaluator.evaluate(config))` is the design
// with the cycles of its programs on the cycle simulator (codesign/tsim).
#pragma once

#include <functional>
#include <string>

#include "tilewright/codesign/evaluation.h"

namespace tilewright::codesign {

/// The level at which searches evaluate.
inline constexpr const char* kModelLevel = "model";

/// Of one run of the layer, mapped as the result of the model says. Threads may call it together.
using LayerCycles =
    std::function<Result<double>(const Hardware&, const WorkloadLayer&, const LayerResult&)>;

struct Level {
  std::string name;
  LayerCycles cycles;  ///< none: those of the levels below
  std::function<Result<Area>(const Hardware&, const Technology&)> area;  ///< none: the model's
  /// Asked before a search begins. errors: Unsupported (a technology that it cannot tell of), Tool.
  std::function<Status(const Technology&)> accepts;
};

/// `below` with the cycles of that level in every layer that the accelerator runs, or with its
/// area. errors: those of the level, with the layer.
Result<DesignResult> at_level(const Level& level, const DesignEvaluator& evaluator,
                              const Hardware& hardware, const DesignResult& below);

}  // namespace tilewright::codesign
