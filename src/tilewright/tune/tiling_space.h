// FlexTensor's space for any Func: its loops split into levels, written down as a sketch.
#pragma once

#include <string>

#include "tilewright/tune/space.h"

namespace tilewright::tune {

struct TilingOptions {
  /// The paper's form: factors divide extents, 8 ways to unroll, features as they are; padding
  /// stands apart, readers of the sums in the tile. Otherwise innermost factors of the result's
  /// loops are free, and what stands around the main nest is decided too.
  bool paper = false;
};

/// The text of the sketch (schedule/sketch.h); empty where `task` has no nest to tile.
///   source: FlexTensor (ASPLOS 2020), section 4.2; levels of its CPU template.
std::string tiling_sketch(const measure::Task& task, const TilingOptions& options);

std::unique_ptr<ScheduleSpace> tiling_space(const measure::Task& task,
                                            const TilingOptions& options);

}  // namespace tilewright::tune
