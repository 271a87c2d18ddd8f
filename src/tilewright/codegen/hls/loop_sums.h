// Numbers, indices and conditions of several programs of one form as those of one program. Internal
// to table.cc.
//
//   h.o * 28 + h < 57,  h < 8 (h.o turns once)   =>   h.o * 28 + h <= t   with t in (56, 7)
//
// Both are sums of loops: what simplification left out of one program is found again. A loop of one
// turn has any factor, so it gets that of the other programs: `k.o * 128 + k.i`, of which a tool
// can tell the bank, stays that. A condition that one program lacks gets such a limit that it
// always holds there.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// constant + sum of factor * loop, loops by their numbers.
struct LoopSum {
  std::map<int, int64_t> factors;
  int64_t constant = 0;
};

/// Of each program.
using Numbers = std::vector<int64_t>;

class LoopSums {
 public:
  explicit LoopSums(size_t programs) : loops_of_(programs) {}

  /// The constant, or a scalar if it differs; places with the same numbers share it.
  Expr number(const Numbers& values);
  const std::vector<Scalar>& columns() const { return columns_; }
  /// Of each column.
  const std::vector<Numbers>& values() const { return values_; }

  /// The common form of a loop or an iteration that all programs have. requires: extents >= 1.
  Var bind(const std::vector<Var>& vars, const Numbers& extents);

  /// Absent if one of them is no sum of loops.
  std::optional<std::vector<LoopSum>> sums_of(const std::vector<Expr>& exprs) const;
  Expr index(const std::vector<LoopSum>& sums);

  /// Adds sums that are at least 0 where `condition` holds. False, and nothing is added: it is no
  /// conjunction of comparisons of sums of loops.
  bool add_conditions(size_t program, const Expr& condition, std::vector<LoopSum>& where) const;
  /// All conditions of all programs, absent if there are none. `where`: of each program.
  Expr conditions(const std::vector<std::vector<LoopSum>>& where);

 private:
  std::optional<LoopSum> sum_of(size_t program, const Expr& e) const;
  bool turns_once(int loop, size_t program) const {
    return extents_[static_cast<size_t>(loop)][program] == 1;
  }
  Numbers factors_of(const std::vector<LoopSum>& sums, int loop) const;
  Expr times(const Expr& loop, Numbers factors);
  Expr terms_of(const std::vector<LoopSum>& sums, int sign);
  bool one_condition(const LoopSum& a, size_t of_a, const LoopSum& b, size_t of_b) const;
  LoopSum always(const LoopSum& like, size_t program) const;
  Expr condition(const std::vector<LoopSum>& sums);

  std::vector<Scalar> columns_;
  std::vector<Numbers> values_;
  std::vector<Var> loops_;  ///< of the common program
  std::vector<Numbers> extents_;
  std::vector<std::map<Var, int>> loops_of_;  ///< of each program
};

/// Whether all are the same.
template <class T>
bool alike(const std::vector<T>& all) {
  for (const T& one : all)
    if (!(one == all[0])) return false;
  return true;
}
/// What `get` makes of each.
template <class T, class F>
auto each(const std::vector<T>& all, F get) {
  std::vector<decltype(get(all[0]))> out;
  for (const T& one : all) out.push_back(get(one));
  return out;
}

}  // namespace tilewright::codegen
