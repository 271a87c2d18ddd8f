// A pixel's row and column matter where windows reach over its neighbours. To a product they are
// one number, and one loop of 49 rows is cut into tiles better than seven loops of seven:
//
//   y[h, w, n] += x[h, w, k] * W[k, n]    (h, w) everywhere side by side: joined
//   y[h, w]     = x[w, h]                 in x the other way round: they stay
//   y[h, w]     = x[h, w] + b[w]          b knows w alone: they stay
//
// All pairs of neighbouring axes are taken to be one, until an access contradicts; a pair that is
// given up may contradict others, so the accesses are read again until nothing changes.
#include "tilewright/ir/join_axes.h"

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/ir/block_nests.h"
#include "tilewright/ir/walk.h"

namespace tilewright {
namespace {

/// Whether an axis of a buffer is one with the axis behind it, by axis.
using Joined = std::map<Buffer, std::vector<bool>>;

class Joining {
 public:
  explicit Joining(const Func& func) : func_(func) {}

  Func run() {
    if (!func_.scalars.empty() || has_call(func_.body)) return func_;
    nests_ = block_nests(func_.body);
    for (const BlockNest& nest : nests_)
      for (const BlockAccess& access : nest.accesses) used_.insert(access.buffer);
    assume();
    for (bool changed = true; changed;) {
      changed = false;
      for (const BlockNest& nest : nests_)
        for (const BlockAccess& access : nest.accesses) changed |= contradict(nest, access);
    }
    return rewritten();
  }

 private:
  void assume(const Buffer& buffer, bool dense) {
    std::vector<bool>& pairs = joined_[buffer];
    for (size_t axis = 0; axis + 1 < buffer.rank(); ++axis)
      pairs.push_back(dense && used_.contains(buffer) && as_int(buffer.shape()[axis]) &&
                      as_int(buffer.shape()[axis + 1]));
  }

  void assume() {
    for (const Param& param : func_.params)
      assume(param.buffer, param.strides.empty() && !param.values);
    walk(func_.body, [&](const Stmt& s) {
      if (const auto* alloc = s.as<Alloc>()) assume(alloc->buffer, alloc->marks.empty());
    });
  }

  /// Gives up the pairs of the accessed buffer that this access does not take together.
  bool contradict(const BlockNest& nest, const BlockAccess& access) {
    bool changed = false;
    std::vector<bool>& pairs = joined_.at(access.buffer);
    for (size_t axis = 0; axis < pairs.size(); ++axis) {
      if (!pairs[axis] || takes_together(nest, access, axis)) continue;
      pairs[axis] = false;
      changed = true;
    }
    return changed;
  }

  bool takes_together(const BlockNest& nest, const BlockAccess& access, size_t axis) const {
    const Var* first = plain_var(access.indices[axis]);
    const Var* second = plain_var(access.indices[axis + 1]);
    if (first == nullptr || second == nullptr || *first == *second) return false;
    const Iter* outer = whole_axis(nest, *first, access.buffer.shape()[axis]);
    const Iter* inner = whole_axis(nest, *second, access.buffer.shape()[axis + 1]);
    return outer != nullptr && inner != nullptr && outer->kind == inner->kind &&
           outer->kind != IterKind::Scan && have_neighbouring_loops(nest, *outer, *inner) &&
           always_together(nest, *first, *second);
  }

  /// The iteration of `var` if it runs over all of an axis of this extent.
  static const Iter* whole_axis(const BlockNest& nest, const Var& var, const Expr& extent) {
    const Iter* iter = nest.iter_of(var);
    return iter != nullptr && as_int(iter->extent) == as_int(extent) ? iter : nullptr;
  }

  /// Whether each has a loop of its own, of its extent, one right inside the other.
  static bool have_neighbouring_loops(const BlockNest& nest, const Iter& outer, const Iter& inner) {
    const auto at = [&](const Iter& iter) {
      return std::find(nest.loops.begin(), nest.loops.end(), nest.loop_of(iter));
    };
    const auto first = at(outer), second = at(inner);
    return first != nest.loops.end() && second != nest.loops.end() && second - first == 1;
  }

  /// Whether the block names the two only as neighbours along joined axes.
  bool always_together(const BlockNest& nest, const Var& first, const Var& second) const {
    size_t known = 0;
    for (const BlockAccess& access : nest.accesses) {
      const std::vector<bool>& pairs = joined_.at(access.buffer);
      for (size_t axis = 0; axis < pairs.size(); ++axis) {
        const Var* a = plain_var(access.indices[axis]);
        const Var* b = plain_var(access.indices[axis + 1]);
        if (pairs[axis] && a != nullptr && b != nullptr && *a == first && *b == second) ++known;
      }
    }
    size_t named_first = 0, named_second = 0;
    walk(
        nest.block->body, [](const Stmt&) {},
        [&](const Expr& e) {
          const Var* var = plain_var(e);
          named_first += var != nullptr && *var == first;
          named_second += var != nullptr && *var == second;
        });
    return !guards(nest, first) && !guards(nest, second) && named_first == known &&
           named_second == known;
  }

  /// Whether the block's guard names a loop of iteration `var`.
  static bool guards(const BlockNest& nest, const Var& var) {
    if (!nest.block->guard) return false;
    return std::any_of(nest.block->iters.begin(), nest.block->iters.end(), [&](const Iter& iter) {
      return iter.var == var && uses_any(nest.block->guard, free_vars(iter.binding));
    });
  }

  Func rewritten() {
    AxisChange change;
    for (const auto& [buffer, pairs] : joined_)
      if (std::count(pairs.begin(), pairs.end(), true) > 0)
        change.buffers[buffer] =
            Buffer(buffer.name(), buffer.dtype(), joined_shape(buffer), buffer.scope());
    if (change.buffers.empty()) return func_;
    for (const BlockNest& nest : nests_) join_loops(nest);
    change.indices = [&](const Buffer& b, const std::vector<Expr>& all) { return indices(b, all); };
    change.other_stmt = [&](const Stmt& s) { return rewritten(s); };
    return change_axes(func_, change);
  }

  std::vector<Expr> joined_shape(const Buffer& buffer) const {
    std::vector<Expr> shape;
    int64_t before = 1;  // elements of the axes that are one with this one
    for (size_t axis = 0; axis < buffer.rank(); ++axis) {
      const Expr& extent = buffer.shape()[axis];
      const bool goes_on = axis + 1 < buffer.rank() && joined_.at(buffer)[axis];
      if (goes_on) {
        before *= *as_int(extent);
        continue;
      }
      shape.push_back(before == 1 ? extent : int_imm(before * *as_int(extent)));
      before = 1;
    }
    return shape;
  }

  /// Of joined axes the last one's index stands for all.
  std::vector<Expr> indices(const Buffer& buffer, const std::vector<Expr>& all) const {
    const std::vector<bool>& pairs = joined_.at(buffer);
    std::vector<Expr> out;
    for (size_t axis = 0; axis < all.size(); ++axis)
      if (axis >= pairs.size() || !pairs[axis]) out.push_back(all[axis]);
    return out;
  }

  /// Notes which iterations and loops of the nest go, and how far those that stay run.
  void join_loops(const BlockNest& nest) {
    for (const BlockAccess& access : nest.accesses) {
      const std::vector<bool>& pairs = joined_.at(access.buffer);
      int64_t before = 1;
      for (size_t axis = 0; axis < access.indices.size(); ++axis) {
        const bool goes_on = axis < pairs.size() && pairs[axis];
        if (!goes_on && before == 1) continue;
        const Var var = *plain_var(access.indices[axis]);
        const Iter* iter = nest.iter_of(var);
        const Var loop = *plain_var(iter->binding);
        before *= *as_int(iter->extent);
        if (goes_on) gone_.insert({var, loop});
        if (goes_on) continue;
        extents_[var] = extents_[loop] = before;
        before = 1;
      }
    }
  }

  Stmt rewritten(const Stmt& s) const {
    if (const auto* loop = s.as<For>()) {
      if (gone_.contains(loop->var)) return loop->body;
      For kept = *loop;
      if (const auto to = extents_.find(loop->var); to != extents_.end())
        kept.extent = int_imm(to->second);
      return make(std::move(kept));
    }
    const auto* block = s.as<Block>();
    if (block == nullptr) return s;
    Block kept = *block;
    std::erase_if(kept.iters, [&](const Iter& iter) { return gone_.contains(iter.var); });
    for (Iter& iter : kept.iters)
      if (const auto to = extents_.find(iter.var); to != extents_.end())
        iter.extent = int_imm(to->second);
    return make(std::move(kept));
  }

  const Func& func_;
  std::vector<BlockNest> nests_;
  std::set<Buffer> used_;
  Joined joined_;
  std::set<Var> gone_;              ///< iterations, and their loops
  std::map<Var, int64_t> extents_;  ///< of iterations and loops that stand for others too
};

}  // namespace

Func join_axes(const Func& func) { return Joining(func).run(); }

}  // namespace tilewright
