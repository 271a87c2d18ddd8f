// Programs that people write as loops, brought to the form that rules for schedules know.
#pragma once

#include "tilewright/ir/stmt.h"

namespace tilewright {

/// The same program with a nest for each block where that is possible.
///   rewrite:  for i { S  T }  =>  for i { S }  for i' { T[i := i'] }
///   where:    `i` is serial and unmarked; whatever one of the statements writes and another
///             accesses, all do at index `i` along one of its axes; they allocate nothing for each
///             other and call no intrinsics
///   keeps:    the order of each block's instances; loops have equal names (see with_unique_names)
///   source:   loop distribution, Kennedy and Allen
Func separate_nests(const Func& func);

}  // namespace tilewright
