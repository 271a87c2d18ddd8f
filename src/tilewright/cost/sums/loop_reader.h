// Index expressions as sums of strided loops, for reading computations.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tilewright/cost/sums/computation.h"

namespace tilewright::cost {

struct SourceLoop {
  Var var;
  std::string name;
  int64_t extent = 1;
  bool reduces = false;
};

/// A name without digits that is not in `taken` (mappings are written `tile=k64`); it is from then
/// on.
std::string loop_name(const std::string& wanted, std::set<std::string>& taken);

/// constant + sum of stride * loop.
struct LoopIndex {
  std::map<int, int64_t> terms;  ///< by loop, no zeros
  int64_t constant = 0;
  friend bool operator==(const LoopIndex&, const LoopIndex&) = default;
};

/// Reads indices. Loops under `/` and `%` are cut into two: `k / 8` and `k % 8`.
class LoopReader {
 public:
  explicit LoopReader(const std::vector<SourceLoop>& nest);
  /// Notes where `e` cuts loops. To be called with every expression before `make_loops`.
  void find_cuts(const Expr& e);
  /// Those of the result first.
  std::vector<SpatialLoop> make_loops();
  /// Nothing: it is no sum of strided loops.
  std::optional<LoopIndex> read(const Expr& e) const;

 private:
  struct Place {
    int64_t extent = 1, cut = 0;  ///< 0: whole
    int outer = -1, inner = -1;
  };
  const std::vector<SourceLoop>& nest_;
  std::map<Var, Place> places_;
};

/// `a >= 0`, `b > a` and the like as an index that is not below zero. Nothing: it is none.
std::optional<LoopIndex> not_below_zero(const LoopReader& reader, const Expr& condition);
/// Whether that holds for all iterations, or says that an index is inside of its factor.
bool is_padding(const LoopIndex& index, const Computation& computation);

/// Splits what groups share off from their indices, puts taps of one element back into the indices
/// of their image, and leaves out loops and axes of one element that no unit needs.
void tidy(Computation& computation);

}  // namespace tilewright::cost
