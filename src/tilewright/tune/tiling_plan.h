// What FlexTensor's space needs to know of a Func: its main nest and the blocks around that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/rules/common/draft.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// Parts of every loop. source: FlexTensor (ASPLOS 2020), section 4.2.
inline constexpr int kTilingLevels = 4;

/// One loop of the main nest.
struct TilingLoop {
  std::string name;      ///< in the program
  std::string decision;  ///< that splits it
  int64_t extent = 1;
  bool reduces = false;

  /// The loop that the parts of `level` have become, 0 the outermost.
  std::string at(int level) const;
};

/// A block around the main nest that may be computed in several places.
struct TilingAround {
  std::string decision, block;
  bool reads_main = false;  ///< else the main block reads it
  bool pads = false;        ///< its value is chosen by a condition
  double bytes = 0;         ///< of its result
  std::vector<std::string> ways;
};

struct TilingPlan {
  std::string main, init;  ///< blocks; no `init` where nothing is summed
  std::string sums;        ///< buffer of the sums
  bool staged = false;     ///< that buffer is made by cache_write
  int64_t work = 0;
  int64_t lanes = 1;
  std::vector<TilingLoop> loops;  ///< one per iteration of the main block, in order
  std::vector<TilingAround> around;

  /// Loops with more than one iteration.
  std::vector<TilingLoop> moving(bool reduces) const;
};

/// Inlines the blocks between others: element-wise ones that only element-wise ones read.
void inline_passing(rules::Draft& draft);

/// The block that most work is done in: a reduction if there is one, else an element-wise one that
/// writes an output. Null without either.
const rules::BlockFacts* main_block(const Func& func, const std::vector<rules::BlockFacts>& blocks);

/// For `task` after `inline_passing`. Ways: `apart`, `inline`, `outer` and `middle` (in the
/// parallel loop, in the second level) for blocks that are read; `tile`, `outer`, `apart` for one
/// that reads. Absent where nothing spatial moves.
std::optional<TilingPlan> tiling_plan(const measure::Task& task);

}  // namespace tilewright::tune
