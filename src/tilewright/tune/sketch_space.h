// Spaces made from sketches (schedule/sketch.h): TVM's templates, written by hand, and FlexTensor's
// space, which tiling_space.cc writes.
#pragma once

#include <functional>
#include <memory>

#include "tilewright/cost/prediction.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/schedule/sketch.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

struct SketchOptions {
  /// Factors as they are, for the network of the paper; otherwise their logarithms.
  bool raw_features = false;
  /// The time of a point; absent: predicted from the loops of its schedule.
  std::function<cost::Prediction(const std::vector<schedule::Words>&)> predict;
};

/// The schedules of `sketch`. Blocks that only pass values on are inlined first; in what is left,
/// the sketch may name blocks by what they are: `main`, the reduction with most work (or, without
/// one, the result with most work), `pad`, the block that pads what `main` reads, and `out`, the
/// one that reads its sums. Blocks it leaves alone are finished by rule: inside its loops they are
/// vectorised (and unrolled, where they set or finish sums), apart from these they get the default
/// schedule.
///   errors: as schedule::bind; Invalid for decisions with more values than can be listed.
Result<std::unique_ptr<ScheduleSpace>> sketch_space(const measure::Task& task,
                                                    const schedule::Sketch& sketch,
                                                    SketchOptions options = {});

/// The values of a decision, in the order of the table that `search_decision` makes of them.
std::vector<schedule::Words> decision_values(const schedule::SketchDecision& decision);
/// A sketch's decision, its extent bound, as searchers see it.
search::Decision search_decision(const schedule::SketchDecision& decision,
                                 const std::vector<schedule::Words>& values, bool raw_features);

/// Finishes what `draft` has left serial, as told at sketch_space.
void finish_draft(rules::Draft& draft, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::tune
