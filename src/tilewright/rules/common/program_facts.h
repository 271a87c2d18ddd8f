// What the rules need to know of a Func at stage Tensor: its blocks, who reads whom, index
// patterns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright::rules {

/// One block with what it reads and writes.
struct BlockFacts {
  enum class Kind { Injective, Init, Reduce, Other } kind = Kind::Other;
  std::string name;
  const Block* block = nullptr;    ///< owned by the Func
  const Store* store = nullptr;    ///< the only Store; null for Kind::Other
  std::vector<Load> loads;         ///< every load in the stored value
  std::vector<std::string> loops;  ///< names of the loops around, outermost first
  std::vector<int64_t> extents;    ///< of those loops; 0 where not constant
  int cost = 0;                    ///< arithmetic nodes in the value; math functions count 10

  /// Name of the loop that runs an iteration: bound to its variable, or to that plus a place that
  /// loops around it give (nests made anew inside others); empty otherwise.
  std::string loop_of(const Var& iter) const;
  /// How often that loop runs; 1 for an iteration without a loop of its own, 0 if not constant.
  int64_t extent_of(const Var& iter) const;
  const Iter* iter(const Var& var) const;
  /// Product of the extents of all iterations, 0 if not constant.
  int64_t work() const;
  /// Part of them that the guard lets run: 3/4 for 24 channels in two blocks of 16. 1 where it
  /// names more than the loops of the block, or too many iterations to count.
  double counted() const;
};

/// All blocks of `func` in program order.
std::vector<BlockFacts> collect_blocks(const Func& func);
const BlockFacts* find_block(const std::vector<BlockFacts>& blocks, const std::string& name);
/// Blocks that load `buffer`.
std::vector<const BlockFacts*> readers(const std::vector<BlockFacts>& blocks, const Buffer& buffer);
bool is_output(const Func& func, const Buffer& buffer);

/// The two factors of a sum of products, `x += a * b` (looking through casts, and through selects
/// between a value and a constant: padding).
struct Product {
  Load a, b;
};
std::optional<Product> product_of(const BlockFacts& block);

/// Step in the last axis of `load` as `var` runs through an aligned group of `lanes` values; absent
/// if there is no one step, or another axis moves too.
std::optional<int64_t> last_axis_stride(const Load& load, const Var& var, int64_t lanes);
bool mentions(const Load& load, const Var& var);

}  // namespace tilewright::rules
