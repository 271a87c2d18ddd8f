// How the rows of a factor's copy in shared memory are to lie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// A copy that block `sum` reads, filled in loop `round` by all threads of a block.
struct StagedCopy {
  std::string sum, copy, round;
  schedule::Names threads;      ///< loops of the sum over threads: x, y, z
  std::vector<int64_t> counts;  ///< their extents
  schedule::Names vectors;      ///< loops over a thread's elements that lie side by side
  int64_t access_bytes = 16;    ///< the widest access of a thread
  /// An axis of the copy of whose elements four are a word, which is an element to everything else.
  std::optional<size_t> words = {};
};

/// `along`: the axis of the copy whose elements a thread reads side by side; absent if there is
/// none. `pad`: elements to leave free behind rows along it (the last axis if absent), so that rows
/// begin where wide accesses may, and threads that read or write together do so in different banks.
struct StagedRows {
  std::optional<size_t> along;
  int64_t pad = 0;
};
StagedRows rows_of(const Draft& draft, const StagedCopy& staged);

}  // namespace tilewright::rules
