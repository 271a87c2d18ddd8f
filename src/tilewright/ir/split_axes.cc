// The filters of one group read the same channels. While the group hides in a quotient, an element
// of x seems to move with every filter, and no filters share it in a register:
//
//   y[k, p]      += x[k / 8 * 5 + c, p] * W[k, c]        k is in both factors
//   y[g, f, p]   += x[g * 5 + c, p]     * W[g, f, c]     f is in one: eight rows of a tile
//
// The sum that divides is where it begins. An axis that a divided iteration runs along becomes two,
// and so does every iteration that runs along such an axis, until nothing changes.
#include "tilewright/ir/split_axes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tilewright/ir/block_nests.h"
#include "tilewright/ir/walk.h"

namespace tilewright {
namespace {

/// What an iteration, or its loop, becomes.
struct Halves {
  Var outer, inner;
  int64_t factor = 1;  ///< iterations of `inner`
};

Halves halves_of(const Var& var, int64_t factor) {
  return {Var(var.name() + "_o", var.dtype()), Var(var.name() + "_i", var.dtype()), factor};
}

class Splitting {
 public:
  explicit Splitting(const Func& func) : func_(func), nests_(block_nests(func.body)) {}

  Func run() {
    if (!func_.scalars.empty() || has_call(func_.body)) return func_;
    find_buffers();
    for (const BlockNest& nest : nests_) begin(nest);
    if (halves_.empty()) return func_;
    for (bool changed = true; changed;) {
      changed = false;
      for (const BlockNest& nest : nests_)
        for (const BlockAccess& access : nest.accesses) {
          const std::optional<bool> spread_on = spread(nest, access);
          if (!spread_on) return func_;
          changed |= *spread_on;
        }
    }
    return rewritten();
  }

 private:
  void find_buffers() {
    for (const Param& param : func_.params)
      if (param.strides.empty() && !param.values) free_.insert(param.buffer);
    walk(func_.body, [&](const Stmt& s) {
      if (const auto* alloc = s.as<Alloc>(); alloc != nullptr && alloc->marks.empty())
        free_.insert(alloc->buffer);
    });
  }

  /// Splits the iterations that the sums of `nest` divide.
  void begin(const BlockNest& nest) {
    const auto sums = [](const Iter& iter) { return iter.kind == IterKind::Reduce; };
    if (std::none_of(nest.block->iters.begin(), nest.block->iters.end(), sums)) return;
    for (const BlockAccess& access : nest.accesses)
      for (const Expr& index : access.indices)
        walk(index, [&](const Expr& e) {
          const auto* quotient = e.as<Binary>();
          if (quotient == nullptr || quotient->op != BinaryOp::Div) return;
          const Var* var = plain_var(quotient->a);
          const Iter* iter = var == nullptr ? nullptr : nest.iter_of(*var);
          if (iter != nullptr && iter->kind == IterKind::Space)
            split(nest, *iter, as_int(quotient->b).value_or(1));
        });
  }

  /// False where it cannot be, or was split by another number.
  bool split(const BlockNest& nest, const Iter& iter, int64_t factor) {
    if (const auto known = halves_.find(iter.var); known != halves_.end())
      return known->second.factor == factor;
    if (iter.kind == IterKind::Scan) return false;
    const For* loop = nest.loop_of(iter);
    const int64_t extent = as_int(iter.extent).value_or(1);
    if (loop == nullptr || factor < 2 || factor >= extent || extent % factor != 0) return false;
    halves_[iter.var] = halves_of(iter.var, factor);
    halves_[loop->var] = halves_of(loop->var, factor);
    return true;
  }

  /// Whether the access made more axes or iterations two; absent where a split axis is read in
  /// another way than along one iteration.
  std::optional<bool> spread(const BlockNest& nest, const BlockAccess& access) {
    bool changed = false;
    for (size_t axis = 0; axis < access.indices.size(); ++axis) {
      const Var* var = plain_var(access.indices[axis]);
      const Iter* iter = var == nullptr ? nullptr : nest.iter_of(*var);
      const bool whole =
          iter != nullptr && as_int(iter->extent) == as_int(access.buffer.shape()[axis]);
      const auto halves = var == nullptr ? halves_.end() : halves_.find(*var);
      const int64_t factor = factor_of(access.buffer, axis);
      if (factor > 1) {
        if (!whole || !split(nest, *iter, factor)) return std::nullopt;
        changed |= halves == halves_.end();
      } else if (halves != halves_.end() && whole && free_.contains(access.buffer)) {
        factors_[access.buffer][axis] = halves->second.factor;
        changed = true;
      }
    }
    return changed;
  }

  /// Of a split axis; 1: it stays.
  int64_t factor_of(const Buffer& buffer, size_t axis) const {
    const auto axes = factors_.find(buffer);
    if (axes == factors_.end()) return 1;
    const auto at = axes->second.find(axis);
    return at == axes->second.end() ? 1 : at->second;
  }

  Func rewritten() const {
    AxisChange change;
    for (const auto& [buffer, axes] : factors_)
      change.buffers[buffer] =
          Buffer(buffer.name(), buffer.dtype(), split_shape(buffer), buffer.scope());
    change.indices = [&](const Buffer& b, const std::vector<Expr>& all) { return indices(b, all); };
    change.other_stmt = [&](const Stmt& s) { return rewritten(s); };
    change.other_expr = [&](const Expr& e) { return rewritten(e); };
    Func out = change_axes(func_, change);
    VarMap whole;  // where a half is not enough
    for (const auto& [var, halves] : halves_)
      whole[var] = ref(halves.outer) * halves.factor + ref(halves.inner);
    out.body = substitute(out.body, whole);
    return out;
  }

  std::vector<Expr> split_shape(const Buffer& buffer) const {
    std::vector<Expr> shape;
    for (size_t axis = 0; axis < buffer.rank(); ++axis) {
      const int64_t factor = factor_of(buffer, axis);
      if (factor > 1) shape.push_back(int_imm(*as_int(buffer.shape()[axis]) / factor));
      shape.push_back(factor > 1 ? int_imm(factor) : buffer.shape()[axis]);
    }
    return shape;
  }

  std::vector<Expr> indices(const Buffer& buffer, const std::vector<Expr>& all) const {
    std::vector<Expr> out;
    for (size_t axis = 0; axis < all.size(); ++axis) {
      if (factor_of(buffer, axis) == 1) {
        out.push_back(all[axis]);
        continue;
      }
      const Halves& halves = halves_.at(*plain_var(all[axis]));
      out.push_back(ref(halves.outer));
      out.push_back(ref(halves.inner));
    }
    return out;
  }

  Expr rewritten(const Expr& e) const {
    const auto* part = e.as<Binary>();
    const Var* var = part == nullptr ? nullptr : plain_var(part->a);
    const auto halves = var == nullptr ? halves_.end() : halves_.find(*var);
    if (halves == halves_.end() || as_int(part->b) != halves->second.factor) return e;
    if (part->op == BinaryOp::Div) return ref(halves->second.outer);
    return part->op == BinaryOp::Mod ? ref(halves->second.inner) : e;
  }

  Stmt rewritten(const Stmt& s) const {
    if (const auto* loop = s.as<For>()) {
      const auto at = halves_.find(loop->var);
      if (at == halves_.end()) return s;
      const auto& [outer, inner, factor] = at->second;
      For inside{inner, int_imm(factor), loop->kind, loop->axis, loop->marks, loop->body};
      return make(For{outer, int_imm(*as_int(loop->extent) / factor), loop->kind, loop->axis,
                      loop->marks, make(std::move(inside))});
    }
    const auto* block = s.as<Block>();
    if (block == nullptr) return s;
    Block split = *block;
    split.iters.clear();
    for (const Iter& iter : block->iters) {
      const auto at = halves_.find(iter.var);
      if (at == halves_.end()) {
        split.iters.push_back(iter);
        continue;
      }
      const auto& [outer, inner, factor] = at->second;
      const Halves& loops = halves_.at(*plain_var(iter.binding));
      split.iters.push_back(
          {outer, iter.kind, int_imm(*as_int(iter.extent) / factor), ref(loops.outer)});
      split.iters.push_back({inner, iter.kind, int_imm(factor), ref(loops.inner)});
    }
    return make(std::move(split));
  }

  const Func& func_;
  std::vector<BlockNest> nests_;
  std::set<Buffer> free_;  ///< may have more axes
  std::map<Var, Halves> halves_;
  std::map<Buffer, std::map<size_t, int64_t>> factors_;  ///< of split axes
};

}  // namespace

Func split_axes(const Func& func) { return Splitting(func).run(); }

}  // namespace tilewright
