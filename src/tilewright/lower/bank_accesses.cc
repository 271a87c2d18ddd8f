#include "tilewright/lower/bank_accesses.h"

#include <algorithm>
#include <functional>
#include <map>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"

namespace tilewright::lower {
namespace {

/// Indices are evaluated at most this often for one buffer.
constexpr int64_t kMostEvaluations = int64_t{1} << 18;

using Point = std::map<Var, int64_t>;

/// An index, ready to be evaluated often.
class Index {
 public:
  explicit Index(const Expr& e) : expr_(e), affine_(arith::as_affine(e)) {
    plain_ = std::all_of(affine_.terms.begin(), affine_.terms.end(),
                         [](const auto& term) { return term.first.template as<VarRef>(); });
  }
  bool plain() const { return plain_; }
  /// The value without the variables in `point`: equal for two indices, they move alike.
  std::map<Var, int64_t> others(const std::set<Var>& without) const {
    std::map<Var, int64_t> out;
    for (const auto& [term, factor] : affine_.terms)
      if (const Var& v = term.as<VarRef>()->var; !without.contains(v)) out[v] += factor;
    return out;
  }
  int64_t at(const Point& point) const {
    auto value = [&](const Var& v) {
      const auto found = point.find(v);
      return found == point.end() ? int64_t{0} : found->second;
    };
    if (plain_) {
      int64_t sum = affine_.constant;
      for (const auto& [term, factor] : affine_.terms)
        sum += factor * value(term.as<VarRef>()->var);
      return sum;
    }
    VarMap values;
    for (const Var& v : free_vars(expr_)) values[v] = int_imm(value(v));
    return as_int(arith::simplify(substitute(expr_, values))).value_or(0);
  }

 private:
  Expr expr_;
  arith::Affine affine_;
  bool plain_;
};

int64_t extent_of(const For& loop) { return as_int(loop.extent).value_or(1); }

/// Calls f for all values of the loops.
void for_all(const std::vector<const For*>& loops, size_t from, Point& point,
             const std::function<void()>& f) {
  if (from == loops.size()) return f();
  for (int64_t i = 0; i < extent_of(*loops[from]); ++i) {
    point[loops[from]->var] = i;
    for_all(loops, from + 1, point, f);
  }
  point.erase(loops[from]->var);
}

int64_t runs_of(const std::vector<const For*>& loops) {
  int64_t n = 1;
  for (const For* loop : loops)
    n = std::min(kMostEvaluations, n) * std::max<int64_t>(extent_of(*loop), 1);
  return n;
}

class BankCounter {
 public:
  BankCounter(const std::vector<ElementAccess>& accesses, const Buffer& buffer,
              const std::vector<Banking>& banking)
      : accesses_(accesses), buffer_(buffer), banking_(banking) {
    for (const ElementAccess& a : accesses) {
      indices_.emplace_back();
      for (const Expr& e : a.indices) indices_.back().emplace_back(e);
    }
  }

  /// Accesses that all move alike meet in banks alike in every iteration.
  bool move_alike() const {
    std::vector<std::map<Var, int64_t>> first;
    for (size_t a = 0; a < accesses_.size(); ++a) {
      std::set<Var> unrolled;
      for (const For* loop : accesses_[a].unrolled) unrolled.insert(loop->var);
      for (size_t axis = 0; axis < indices_[a].size(); ++axis) {
        if (banking_[axis].kind == Banking::Kind::Block && banking_[axis].banks > 1) return false;
        if (!indices_[a][axis].plain()) return false;
        const auto moves = indices_[a][axis].others(unrolled);
        if (a == 0) {
          first.push_back(moves);
        } else if (first[axis] != moves) {
          return false;
        }
      }
    }
    return true;
  }
  int64_t all() const {
    int64_t n = 0;
    for (const ElementAccess& a : accesses_) n += runs_of(a.unrolled);
    return n;
  }
  int64_t at(Point point) const {
    std::map<std::vector<int64_t>, std::set<std::vector<int64_t>>> elements;
    for (size_t a = 0; a < accesses_.size(); ++a)
      for_all(accesses_[a].unrolled, 0, point, [&] {
        std::vector<int64_t> element, bank;
        for (size_t axis = 0; axis < indices_[a].size(); ++axis) {
          element.push_back(indices_[a][axis].at(point));
          bank.push_back(bank_of(element.back(), axis));
        }
        elements[bank].insert(element);
      });
    size_t most = 0;
    for (const auto& [bank, some] : elements) most = std::max(most, some.size());
    return static_cast<int64_t>(most);
  }

 private:
  int64_t bank_of(int64_t index, size_t axis) const {
    const Banking& b = banking_[axis];
    if (b.kind == Banking::Kind::Block) {
      const int64_t extent = as_int(buffer_.shape()[axis]).value_or(b.banks);
      return index / ((extent + b.banks - 1) / b.banks);
    }
    return ((index % b.banks) + b.banks) % b.banks;
  }

  const std::vector<ElementAccess>& accesses_;
  const Buffer& buffer_;
  const std::vector<Banking>& banking_;
  std::vector<std::vector<Index>> indices_;
};

}  // namespace

int64_t most_in_a_bank(const std::vector<ElementAccess>& accesses, const Buffer& buffer,
                       const std::vector<Banking>& banking,
                       const std::vector<const For*>& counter) {
  const BankCounter banks(accesses, buffer, banking);
  const int64_t all = banks.all();
  if (all > kMostEvaluations) return all;
  if (banks.move_alike()) return banks.at({});
  if (runs_of(counter) > kMostEvaluations / std::max<int64_t>(all, 1)) return all;
  int64_t most = 0;
  Point point;
  for_all(counter, 0, point, [&] { most = std::max(most, banks.at(point)); });
  return most;
}

}  // namespace tilewright::lower
