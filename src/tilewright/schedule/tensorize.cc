// The step Tensorize: a nest of loops becomes one call of an intrinsic that computes the same.
//
//   for i in 4, j in 8 { block C(..) { C[4*x + i, 8*y + j] += A[4*x + i] * B[8*y + j] } }
//   with  func outer(inout c: f32[4,8], a: f32[4], b: f32[8]) { .. c[i, j] += a[i] * b[j] }
//   =>
//   block C(x, y) { call outer(C[4*x:+4, 8*y:+8], A[4*x:+4], B[8*y:+8]) }
//
// The nest is read as a tile: iterations are split into what loops around it decide and what its
// own loops count (read_tile). schedule/match.h proposes how its loops correspond to those of the
// intrinsic. For each proposal the Unifier compares the two stored values node by node and finds
// for every parameter the region of a buffer that makes them equal; the first proposal for which
// all fits is taken.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/text.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/loops.h"
#include "tilewright/schedule/match.h"
#include "tilewright/schedule/regenerate.h"
#include "tilewright/schedule/tensorize_intrinsic.h"

namespace tilewright::schedule {
namespace {

std::string one_line(const Store& store) {
  std::string text = tilewright::print(make(store));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string list(const std::vector<For>& loops) {
  std::string out;
  for (const For& loop : loops)
    out += fmt::format("{}{} in {}", out.empty() ? "" : ", ", loop.var.name(),
                       tilewright::print(loop.extent));
  return out.empty() ? "none" : out;
}

/// The nest to be replaced, its store in terms of the loops of the nest and the iterations that the
/// new block will have.
struct Tile {
  Id block = kNone;
  StoreNest nest;
  std::vector<Iter> iters;
  Expr guard;
  arith::Bounds bounds;
};

bool mentions(const Expr& e, const std::vector<Var>& vars) {
  return std::any_of(vars.begin(), vars.end(), [&](const Var& v) { return uses(e, v); });
}

/// Splits an iteration bound to loops of the nest: the part that other loops decide stays an
/// iteration (put into `iters`), the rest comes out as what to add to it in place of the iteration.
Result<Expr> split_iter(const Iter& iter, const Expr& binding, const std::vector<Var>& loops,
                        const arith::Bounds& bounds, std::vector<Iter>& iters) {
  if (!mentions(binding, loops) && mentions(iter.binding, loops) && is_const_int(binding, 0) &&
      is_const_int(iter.extent, 1))
    return int_imm(0);
  if (!mentions(binding, loops)) {
    iters.push_back({iter.var, iter.kind, iter.extent, binding});
    return ref(iter.var);
  }
  arith::Affine outer, inner;
  const arith::Affine all = arith::as_affine(binding);
  outer.constant = all.constant;
  for (const auto& term : all.terms)
    (mentions(term.first, loops) ? inner : outer).terms.push_back(term);
  Expr tile = arith::to_expr(inner);
  for (const Var& v : free_vars(tile))
    if (std::find(loops.begin(), loops.end(), v) == loops.end())
      return refuse(6, fmt::format("iteration {} = {} does not tell the nest from the loops around",
                                   iter.var.name(), tilewright::print(binding)));
  const auto range = arith::const_range(tile, bounds);
  if (!range)
    return refuse(6, fmt::format("iteration {} = {} has no known range in the nest",
                                 iter.var.name(), tilewright::print(binding)));
  const int64_t size = range->second - range->first + 1;
  tile = arith::simplify(tile - range->first, bounds);
  const Expr base = arith::simplify(arith::to_expr(outer) + range->first, bounds);
  const Expr count = arith::simplify(base / size, bounds);
  const bool whole = arith::prove(eq(base, count * size), bounds) &&
                     arith::prove(eq(iter.extent % size, int_imm(0)), bounds);
  if (whole) {
    const Expr extent = arith::simplify(iter.extent / size, bounds);
    if (is_const_int(extent, 1)) return tile;
    iters.push_back({iter.var, iter.kind, extent, count});
    return ref(iter.var) * size + tile;
  }
  iters.push_back({iter.var, iter.kind, arith::simplify(iter.extent - (size - 1), bounds), base});
  return ref(iter.var) + tile;
}

/// An index such as (x*16 + i) / 16 becomes x, so that it does not seem to move with i.
Stmt with_simple_indices(const Stmt& store, const arith::Bounds& bounds) {
  auto simple = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (const Expr& e : indices) out.push_back(arith::simplify(e, bounds));
    return out;
  };
  auto loads = [&](const Expr& e) {
    const Load* l = e.as<Load>();
    return l == nullptr ? e : load(l->buffer, simple(l->indices));
  };
  const Store& s = *store.as<Store>();
  return make(Store{s.buffer, simple(s.indices), rewrite(s.value, loads), s.combine});
}

Result<Tile> read_tile(const Tree& tree, Id root) {
  const std::string& loop_name = tree.loop(root).var.name();
  const std::vector<Id> ids = perfect_nest(tree, root);
  const std::vector<Id> last = tree.body_of(ids.back());
  if (last.size() != 1 || tree.as<Block>(last[0]) == nullptr)
    return refuse(1, fmt::format("loop {} is not around one block", loop_name));
  Tile tile;
  tile.block = last[0];
  const Block& block = tree.block(tile.block);
  if (single_store(block) == nullptr)
    return refuse(1, fmt::format("block {} is not a single store", block.name));
  for (const Mark& m : block.marks)
    if (m.kind == MarkKind::Atomic)
      return refuse(1, fmt::format("block {} is marked atomic, a call is not", block.name));
  if (in_vector_loop(tree, root))
    return refuse(1, fmt::format("loop {} is in a vector loop", loop_name));
  std::vector<Var> loops;
  VarMap zero;
  for (Id id : ids) {
    const For& loop = tree.loop(id);
    if (!is_plain(loop) || !as_int(loop.extent))
      return refuse(1, fmt::format("loop {} is not serial or unrolled with a constant extent",
                                   loop.var.name()));
    tile.nest.loops.push_back(loop);
    loops.push_back(loop.var);
    if (is_const_int(loop.extent, 1)) zero[loop.var] = int_imm(0);
  }
  tile.bounds = tree.bounds_at(tile.block);
  std::vector<Expr> guards;
  for (const Expr& e : conjuncts(block.guard)) {
    const Expr rest = substitute(e, zero);
    if (arith::prove(rest, tile.bounds)) continue;
    if (mentions(rest, loops))
      return refuse(2, fmt::format("block {} is guarded by {} inside the tile: pad or cut first",
                                   block.name, tilewright::print(rest)));
    guards.push_back(rest);
  }
  tile.guard = conjunction(guards);
  if (tile.guard) tile.bounds.assume(tile.guard);
  VarMap values;
  for (const Iter& iter : block.iters) {
    const Expr binding = arith::simplify(substitute(iter.binding, zero), tile.bounds);
    values[iter.var] = TW_TRY(split_iter(iter, binding, loops, tile.bounds, tile.iters));
  }
  for (const Iter& iter : tile.iters) tile.bounds.bind(iter.var, iter.extent);
  tile.nest.block = block.name;
  const Stmt body = substitute(block.body, values);
  tile.nest.store = *with_simple_indices(body, tile.bounds).as<Store>();
  drop_unit_loops(tile.nest);
  return tile;
}

bool commutative(BinaryOp op) {
  using enum BinaryOp;
  return op == Add || op == Mul || op == Min || op == Max || op == Eq || op == Ne || op == BitAnd ||
         op == BitOr || op == BitXor;
}

/// Makes the intrinsic's store the tile's, under a map of its loops: finds the region of each
/// parameter.
class Unifier {
 public:
  using Dims = std::vector<std::pair<Expr, Expr>>;
  struct Bound {
    Buffer buffer;
    Dims dims;
  };

  Unifier(const IntrinsicMeaning& in, const Tile& tile, const Match& match) : in_(in), tile_(tile) {
    for (const auto& [from, to] : match.indices) loops_[from] = ref(to);
    for (const For& loop : tile.nest.loops) tile_loops_.push_back(loop.var);
    for (const Var& v : tile_loops_) zero_[v] = int_imm(0);
    for (const For& loop : in.nest.loops) in_zero_[loop.var] = int_imm(0);
  }

  bool run() {
    const Store &q = in_.nest.store, &p = tile_.nest.store;
    return access(q.buffer, q.indices, p.buffer, p.indices) && value(q.value, p.value) &&
           distinct(q.buffer);
  }
  const std::map<Buffer, Bound>& regions() const { return regions_; }
  /// A pair of operands that differ only in type, if one was met.
  const std::string& type_conflict() const { return type_conflict_; }

 private:
  bool value(const Expr& q, const Expr& p) {
    if (const Load* a = q.as<Load>()) {
      const Load* b = p.as<Load>();
      return b != nullptr && access(a->buffer, a->indices, b->buffer, b->indices);
    }
    if (q.dtype() != p.dtype() || q.get()->op.index() != p.get()->op.index()) return false;
    return match(
        q, [&](const IntImm&) { return equal(q, p); }, [&](const FloatImm&) { return equal(q, p); },
        [&](const VarRef&) { return false; },
        [&](const Unary& a) {
          const Unary& b = *p.as<Unary>();
          return a.op == b.op && value(a.a, b.a);
        },
        [&](const Binary& a) {
          const Binary& b = *p.as<Binary>();
          if (a.op != b.op) return false;
          if (a.op == BinaryOp::And || a.op == BinaryOp::Or)
            return value(a.a, b.a) && lazily(a.b, b.b);
          return operands(a, q, p);
        },
        [&](const Select& a) {
          const Select& b = *p.as<Select>();
          return value(a.condition, b.condition) && lazily(a.on_true, b.on_true) &&
                 lazily(a.on_false, b.on_false);
        },
        [&](const Cast& a) { return a.bits == p.as<Cast>()->bits && value(a.a, p.as<Cast>()->a); },
        [&](const Load&) { return false; },
        [&](const MathCall& a) {
          const MathCall& b = *p.as<MathCall>();
          if (a.fn != b.fn || a.args.size() != b.args.size()) return false;
          for (size_t i = 0; i < a.args.size(); ++i)
            if (!value(a.args[i], b.args[i])) return false;
          return true;
        });
  }

  /// What the nest may not evaluate and the call takes as a region: it must lie in its buffer.
  bool lazily(const Expr& q, const Expr& p) {
    ++lazy_;
    const bool same = value(q, p);
    --lazy_;
    return same;
  }
  bool inside(const Buffer& buffer, const Dims& dims) const {
    for (size_t d = 0; d < dims.size(); ++d)
      if (!arith::prove(dims[d].first >= 0, tile_.bounds) ||
          !arith::prove(dims[d].first + dims[d].second <= buffer.shape()[d], tile_.bounds))
        return false;
    return true;
  }

  /// Operands of `q` and `p`, the same operator, in any order it allows. Integers also associate.
  bool operands(const Binary& a, const Expr& q, const Expr& p) {
    const bool chain = is_int(q.dtype()) && (a.op == BinaryOp::Add || a.op == BinaryOp::Mul);
    std::vector<Expr> qs, ps;
    collect(q, a.op, chain, qs), collect(p, a.op, chain, ps);
    if (qs.size() != ps.size()) return false;
    return assign(qs, ps, commutative(a.op));
  }
  static void collect(const Expr& e, BinaryOp op, bool chain, std::vector<Expr>& out) {
    const Binary& b = *e.as<Binary>();
    for (const Expr& side : {b.a, b.b}) {
      const Binary* inner = side.as<Binary>();
      if (chain && inner != nullptr && inner->op == op) {
        collect(side, op, chain, out);
      } else {
        out.push_back(side);
      }
    }
  }
  bool assign(const std::vector<Expr>& qs, std::vector<Expr> ps, bool any_order) {
    if (qs.empty()) return true;
    const std::vector<Expr> rest(qs.begin() + 1, qs.end());
    const auto before = regions_;
    for (size_t i = 0; i < (any_order ? ps.size() : 1); ++i) {
      std::vector<Expr> others = ps;
      others.erase(others.begin() + static_cast<long>(i));
      if (value(qs[0], ps[i]) && assign(rest, std::move(others), any_order)) return true;
      regions_ = before;
    }
    return false;
  }

  /// Finds begin and size of the region of `to` such that its elements at the intrinsic's indices
  /// are those at the tile's.
  bool access(const Buffer& param, const std::vector<Expr>& from, const Buffer& to,
              const std::vector<Expr>& at) {
    std::vector<size_t> axes;
    for (size_t d = 0; d < param.rank(); ++d)
      if (!is_const_int(param.shape()[d], 1)) axes.push_back(d);
    Dims dims;
    size_t next = 0;
    for (const Expr& index : at) {
      if (!mentions(index, tile_loops_)) {
        dims.emplace_back(arith::simplify(index, tile_.bounds), int_imm(1));
        continue;
      }
      if (next == axes.size()) return false;
      const Expr& inner = from[axes[next]];
      const Expr begin =
          arith::simplify(substitute(index, zero_) - substitute(inner, in_zero_), tile_.bounds);
      if (!arith::prove(eq(index, begin + substitute(inner, loops_)), tile_.bounds)) return false;
      dims.emplace_back(begin, param.shape()[axes[next]]);
      ++next;
    }
    if (next != axes.size() || (lazy_ > 0 && !inside(to, dims))) return false;
    if (param.dtype() != to.dtype()) {
      type_conflict_ = fmt::format("{} is {}, {} of the intrinsic is {}", to.name(),
                                   name(to.dtype()), param.name(), name(param.dtype()));
      return false;
    }
    const auto [known, fresh] = regions_.emplace(param, Bound{to, dims});
    return fresh || same_region(known->second, to, dims);
  }
  static bool same_region(const Bound& known, const Buffer& to, const Dims& dims) {
    if (known.buffer != to) return false;
    for (size_t d = 0; d < dims.size(); ++d)
      if (!equal(known.dims[d].first, dims[d].first)) return false;
    return true;
  }
  /// Buffers never overlap, so what is written is no other operand.
  bool distinct(const Buffer& written) const {
    const Buffer& result = regions_.at(written).buffer;
    return std::none_of(regions_.begin(), regions_.end(), [&](const auto& r) {
      return r.first != written && r.second.buffer == result;
    });
  }

  const IntrinsicMeaning& in_;
  const Tile& tile_;
  VarMap loops_, zero_, in_zero_;
  std::vector<Var> tile_loops_;
  std::map<Buffer, Bound> regions_;
  std::string type_conflict_;
  int lazy_ = 0;
};

/// The loops of a match have the same extents in both nests, all of them taking part.
bool same_extents(const IntrinsicMeaning& in, const Tile& tile, const Match& m) {
  if (m.indices.size() != in.nest.loops.size() || m.indices.size() != tile.nest.loops.size())
    return false;
  auto extent = [](const StoreNest& nest, const Var& var) {
    const auto it = std::find_if(nest.loops.begin(), nest.loops.end(),
                                 [&](const For& loop) { return loop.var == var; });
    return as_int(it->extent);
  };
  return std::all_of(m.indices.begin(), m.indices.end(), [&](const auto& pair) {
    return extent(in.nest, pair.first) == extent(tile.nest, pair.second);
  });
}

/// The loops that only combine run in the same order in both nests.
bool same_order(const IntrinsicMeaning& in, const Tile& tile, const Match& m) {
  std::vector<Var> before, after;
  auto combines = [](const StoreNest& nest, const Var& var) {
    return std::none_of(nest.store.indices.begin(), nest.store.indices.end(),
                        [&](const Expr& e) { return uses(e, var); });
  };
  for (const For& loop : tile.nest.loops)
    if (combines(tile.nest, loop.var)) before.push_back(loop.var);
  for (const auto& [from, to] : m.indices)
    if (combines(in.nest, from)) after.push_back(to);
  return before == after;
}

std::vector<Var> vars_of(const StoreNest& nest) {
  std::vector<Var> vars;
  for (const For& loop : nest.loops) vars.push_back(loop.var);
  return vars;
}

Stmt make_call(const Block& old, const Tile& tile, const IntrinsicMeaning& in,
               const std::map<Buffer, Unifier::Bound>& regions) {
  Call call{in.callee, {}};
  for (const Param& p : in.func.params) {
    const Unifier::Bound& bound = regions.at(p.buffer);
    call.args.emplace_back(Region{bound.buffer, bound.dims});
  }
  return make(Block{old.name, tile.iters, tile.guard, old.marks, make(std::move(call))});
}

}  // namespace

Result<Func> run(const Tensorize& step, const Func& func) {
  const Tree tree(func);
  const Id root = TW_TRY(tree.find_loop(step.loop));
  const Tile tile = TW_TRY(read_tile(tree, root));
  const IntrinsicMeaning in = TW_TRY(read_intrinsic(step.intrinsic, func));
  const Store &p = tile.nest.store, &q = in.nest.store;
  if (p.combine != q.combine)
    return refuse(5, fmt::format("block {} stores with {}, the intrinsic {} with {}",
                                 tile.nest.block, name(p.combine), in.func.name, name(q.combine)));
  const std::vector<Var> order = vars_of(in.nest);
  const std::vector<Var> loops = vars_of(tile.nest);
  const std::set<Var> tile_set(loops.begin(), loops.end()), in_set(order.begin(), order.end());
  std::vector<Match> matches =
      structural_matches(SyntaxTree(p, tile_set), SyntaxTree(q, in_set), order);
  const bool any = !matches.empty();
  std::erase_if(matches, [&](const Match& m) { return !same_extents(in, tile, m); });
  if (any && matches.empty())
    return refuse(4, fmt::format("loops of the tile: {}; of the intrinsic {}: {}",
                                 list(tile.nest.loops), in.func.name, list(in.nest.loops)));
  std::string type_conflict;
  bool reordered = false;
  for (const Match& m : matches) {
    Unifier unifier(in, tile, m);
    if (!unifier.run()) {
      if (!unifier.type_conflict().empty()) type_conflict = unifier.type_conflict();
      continue;
    }
    if (order_matters(func.math, p.buffer.dtype(), p.combine) &&
        (in.func.math != MathMode::Exact || !same_order(in, tile, m))) {
      reordered = true;
      continue;
    }
    Edit edit(tree);
    edit.replace(root, make_call(tree.block(tile.block), tile, in, unifier.regions()));
    return edit.func();
  }
  if (reordered)
    return refuse(7, fmt::format("{} would add floats in another order, and the math is exact",
                                 in.func.name));
  if (!type_conflict.empty()) return refuse(5, type_conflict);
  return refuse(6, fmt::format("block {} is `{}`, the intrinsic {} is `{}`", tile.nest.block,
                               one_line(p), in.func.name, one_line(q)));
}

}  // namespace tilewright::schedule
