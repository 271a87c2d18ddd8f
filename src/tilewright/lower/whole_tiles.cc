// The pass `whole_tiles`: the last tile of a loop, which goes over its end, computes as all others
// do; what it has too much is zero and is never written.
//
//   alloc W: fpga.bram                                    alloc W: fpga.bram
//   for a in 8 { if 8*t + a < 10 { W[a] = B[8*t + a] } }  for a in 8 { W[a] = select(.., B[..], 0)
//   } for i in 8 { if 8*t + i < 10 { C[i] = 0 } }       =>  for i in 8 { C[i] = 0 } for i in 8, l
//   in 4 {                                  for i in 8, l in 4 {
//     if 8*t + i < 10 && 4*r + l < 6 { C[i] += .. } }       C[i] += .. }
//
// So designs for tiles that divide their loops and for others differ in numbers alone, and a sum
// needs no condition in each of its products. Three rules, each for memory on the chip:
//
//   copy    elements that its guard leaves out are undefined: they may as well be zero
//   sum     what its first store left out is undefined: adding to it changes nothing that is read
//   product where both factors are zero, it adds nothing
#include <algorithm>
#include <map>
#include <optional>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// What the first store of a buffer filled: elements where `holds`; others are zero or, if it began
/// a sum, undefined.
struct FilledTile {
  std::vector<std::optional<Var>> axes;  ///< the loop that each axis of the store runs along
  Expr holds;                            ///< absent: everywhere
};

/// How often buffers on the chip are stored to, and whether the first store is a plain one.
struct TileStores {
  int sets = 0, sums = 0, others = 0;
  bool set_first = false;

  bool is_copy() const { return sets == 1 && sums == 0 && others == 0; }
  bool is_sum() const { return sets == 1 && sums >= 1 && others == 0 && set_first; }
};

class WholeTiles {
 public:
  explicit WholeTiles(const Func& func) {
    walk(func.body, [&](const Stmt& s) {
      if (const auto* alloc = s.as<Alloc>())
        if (!fpga_memory(alloc->buffer.scope()).empty()) stores_[alloc->buffer];
      const auto* store = s.as<Store>();
      const auto found = store == nullptr ? stores_.end() : stores_.find(store->buffer);
      if (found == stores_.end()) return;
      TileStores& all = found->second;
      all.set_first |= store->combine == Combine::Set && all.sums + all.others == 0;
      ++(store->combine == Combine::Set   ? all.sets
         : store->combine == Combine::Add ? all.sums
                                          : all.others);
    });
  }

  /// `loops`: those around `s` of more than one iteration.
  Stmt run(const Stmt& s, const arith::Bounds& bounds, std::vector<Var> loops) {
    if (const auto* list = s.as<Seq>()) {
      std::vector<Stmt> stmts;
      for (const Stmt& child : list->stmts) {
        if (const auto* alloc = child.as<Alloc>()) starts_[alloc->buffer] = loops.size();
        stmts.push_back(run(child, bounds, loops));
      }
      return seq(std::move(stmts));
    }
    if (const auto* loop = s.as<For>()) {
      arith::Bounds inside = bounds;
      inside.bind(loop->var, loop->extent);
      if (!is_const_int(loop->extent, 1)) loops.push_back(loop->var);
      For out = *loop;
      out.body = run(loop->body, inside, std::move(loops));
      return out.body.get() == loop->body.get() ? s : make(std::move(out));
    }
    const auto* branch = s.as<If>();
    const auto* guarded = branch == nullptr ? nullptr : branch->then_body.as<Store>();
    if (guarded != nullptr && !branch->else_body)
      return store(s, *guarded, branch->condition, bounds, loops);
    if (const auto* plain = s.as<Store>()) return store(s, *plain, Expr(), bounds, loops);
    return s;
  }

 private:
  /// `s` is `store`, under `guard` or none.
  Stmt store(const Stmt& s, const Store& store, const Expr& guard, const arith::Bounds& bounds,
             const std::vector<Var>& loops) {
    const auto found = stores_.find(store.buffer);
    if (found == stores_.end() || !inside(store.indices, store.buffer, bounds)) return s;
    const TileStores& all = found->second;
    if (store.combine == Combine::Set && (all.is_copy() || all.is_sum()))
      return first(s, store, guard, all.is_copy(), loops);
    if (store.combine == Combine::Add && guard && all.is_sum()) return sum(s, store, guard, bounds);
    return s;
  }

  Stmt first(const Stmt& s, const Store& store, const Expr& guard, bool copies,
             const std::vector<Var>& loops) {
    const auto axes = axes_of(store, loops);
    // What begins a sum may go over the end if it reads nothing.
    if (!axes || (!copies && reads(store.value))) return s;
    filled_[store.buffer] = {*axes, guard};
    Store whole = store;
    if (copies) whole.value = one_choice(guard ? where(guard, store.value) : store.value);
    return !guard && whole.value.get() == store.value.get() ? s : make(std::move(whole));
  }

  static bool reads(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& part) { found |= part.as<Load>() != nullptr; });
    return found;
  }

  static Expr where(const Expr& guard, const Expr& value) {
    return select(guard, value, zero_of(value.dtype()));
  }
  /// `select(a, select(b, value, 0), 0)` => `select(a && b, value, 0)`.
  static Expr one_choice(const Expr& value) {
    const auto* choice = value.as<Select>();
    if (choice == nullptr || !is_zero(choice->on_false)) return value;
    const Expr inner = one_choice(choice->on_true);
    const auto* second = inner.as<Select>();
    if (second == nullptr || !is_zero(second->on_false)) return value;
    return select(logical_and(choice->condition, second->condition), second->on_true,
                  choice->on_false);
  }
  static bool is_zero(const Expr& e) {
    const auto* real = e.as<FloatImm>();
    return is_const_int(e, 0) || (real != nullptr && real->value == 0);
  }
  static Expr zero_of(DType dtype) {
    return is_float(dtype) ? float_imm(0, dtype) : int_imm(0, dtype);
  }

  /// The loops that the axes of a store run along, if each iteration has an element of its own
  /// since the block began.
  std::optional<std::vector<std::optional<Var>>> axes_of(const Store& store,
                                                         const std::vector<Var>& loops) const {
    const auto start = loops.begin() + static_cast<std::ptrdiff_t>(starts_.at(store.buffer));
    const std::vector<Var> inside(start, loops.end());
    std::vector<std::optional<Var>> axes;
    size_t along = 0;
    for (const Expr& index : store.indices) {
      const auto* var = index.as<VarRef>();
      const bool one = var != nullptr && std::count(inside.begin(), inside.end(), var->var) > 0;
      if (!one && uses_any(index, inside)) return std::nullopt;
      if (one && std::count(axes.begin(), axes.end(), var->var) > 0) return std::nullopt;
      along += one ? 1 : 0;
      axes.push_back(one ? std::optional(var->var) : std::nullopt);
    }
    return along == inside.size() ? std::optional(axes) : std::nullopt;
  }

  Stmt sum(const Stmt& s, const Store& store, const Expr& guard, const arith::Bounds& bounds) {
    if (!reads_inside(store.value, bounds)) return s;
    std::vector<Expr> left;
    for (const Expr& term : conjuncts(guard))
      if (!left_out(store.buffer, store.indices, term, bounds) && !zero(store.value, term, bounds))
        left.push_back(term);
    if (left.size() == conjuncts(guard).size()) return s;
    return left.empty() ? make(store) : make(If{conjunction(left), make(store), Stmt()});
  }

  /// Whether the first store of `buffer` leaves an element out wherever `term` does not hold.
  bool left_out(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& term,
                const arith::Bounds& bounds) const {
    const auto found = filled_.find(buffer);
    if (found == filled_.end() || !found->second.holds) return false;
    VarMap at;
    for (size_t i = 0; i < indices.size(); ++i)
      if (const auto& axis = found->second.axes[i]) at[*axis] = indices[i];
    arith::Bounds filled = bounds;
    filled.assume(substitute(found->second.holds, at));
    return arith::prove(term, filled);
  }

  /// Whether `e` is zero wherever `term` does not hold.
  bool zero(const Expr& e, const Expr& term, const arith::Bounds& bounds) const {
    if (const auto* cast = e.as<Cast>()) return zero(cast->a, term, bounds);
    if (const auto* read = e.as<Load>()) {
      const auto all = stores_.find(read->buffer);
      return all != stores_.end() && all->second.is_copy() &&
             left_out(read->buffer, read->indices, term, bounds);
    }
    const auto* product = e.as<Binary>();
    if (product == nullptr || product->op != BinaryOp::Mul) return false;
    const bool a = zero(product->a, term, bounds), b = zero(product->b, term, bounds);
    // Zero times infinity is no zero.
    return is_float(e.dtype()) ? a && b : a || b;
  }

  static bool inside(const std::vector<Expr>& indices, const Buffer& buffer,
                     const arith::Bounds& bounds) {
    for (size_t i = 0; i < indices.size(); ++i)
      if (!arith::prove(logical_and(indices[i] >= int_imm(0), indices[i] < buffer.shape()[i]),
                        bounds))
        return false;
    return true;
  }
  /// Whether all that `e` reads lies on the chip, and inside of its buffers without any guard.
  bool reads_inside(const Expr& e, const arith::Bounds& bounds) const {
    bool fits = true;
    walk(e, [&](const Expr& part) {
      if (const auto* read = part.as<Load>())
        fits =
            fits && stores_.contains(read->buffer) && inside(read->indices, read->buffer, bounds);
    });
    return fits;
  }

  std::map<Buffer, TileStores> stores_;
  std::map<Buffer, size_t> starts_;  ///< loops around the allocation
  std::map<Buffer, FilledTile> filled_;
};

}  // namespace

Result<Func> whole_tiles(const Func& func) {
  Func out = func;
  out.body = WholeTiles(func).run(func.body, arith::Bounds(func), {});
  return out;
}

}  // namespace tilewright::lower
