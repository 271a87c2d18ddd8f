#include "tilewright/rules/cpu/matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/integers.h"
#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/ir/text.h"
#include "tilewright/rules/cpu/common_steps.h"
#include "tilewright/rules/cpu/strip_steps.h"

namespace tilewright::rules {
namespace {

/// A product as tiles of an instruction; iterations by name.
struct Tiles {
  std::string block, rows_operand;
  std::vector<std::string> batch;  ///< iterations around the rows
  std::string m, n, k, i;
  int64_t columns = 0;  ///< that lie side by side in the packed operand
  hw::Dot dot;
  int64_t pairs_of_rows = 1, pairs_of_columns = 1;  ///< of a register tile
};

/// Whether `load` ends with [.., n / columns, k, n % columns, i].
bool is_packed(const Load& load, const Var& n, const Var& k, const Var& i, int64_t columns) {
  if (load.indices.size() != 4) return false;
  const Expr block = load.indices[0], place = load.indices[2];
  const auto is_var = [](const Expr& e, const Var& var) {
    const VarRef* ref = e.as<VarRef>();
    return ref != nullptr && ref->var == var;
  };
  const auto is_part = [&](const Expr& e, BinaryOp op) {
    const Binary* part = e.as<Binary>();
    return part != nullptr && part->op == op && is_var(part->a, n) && as_int(part->b) == columns;
  };
  return is_part(block, BinaryOp::Div) && is_part(place, BinaryOp::Mod) &&
         is_var(load.indices[1], k) && is_var(load.indices[3], i);
}

/// Whether `load` is [batch.., m, depth * k + i].
bool is_rows(const Load& load, const Var& m, const Var& k, const Var& i, int64_t depth) {
  if (load.indices.size() < 2) return false;
  const VarRef* row = load.indices[load.indices.size() - 2].as<VarRef>();
  const arith::Affine last = arith::as_affine(load.indices.back());
  return row != nullptr && row->var == m && last.terms.size() == 2 && last.constant == 0 &&
         last.coefficient(k) == depth && last.coefficient(i) == 1;
}

/// The tile of pairs that reads least from L1 for each product, rows that fill it up included.
void choose_tile(Tiles& t, int64_t rows, int64_t columns, const hw::CpuTarget& target) {
  // Two registers hold what is loaded ahead.
  const int64_t registers = target.vector_registers - 2;
  const int64_t row_pairs = ceil_div(rows, t.dot.rows), all = columns / t.dot.lanes;
  double least = 0;
  for (int64_t r = 1; r <= std::min<int64_t>(row_pairs, 8); ++r)
    for (int64_t c = t.columns / t.dot.lanes; c <= std::min<int64_t>(all, 8); ++c) {
      if (all % c != 0 || c * t.dot.lanes % t.columns != 0 || r * c + r + c > registers) continue;
      // An instruction for each pair of pairs, a load for each operand of either.
      const int64_t tiles = ceil_div(row_pairs, r) * (all / c);
      const double time = static_cast<double>(tiles) * static_cast<double>(r * c + r + c);
      if (least > 0 && time >= least) continue;
      least = time, t.pairs_of_rows = r, t.pairs_of_columns = c;
    }
}

/// requires: `block` is a sum of products.
Answer<Tiles> match(const BlockFacts& block, const hw::CpuTarget& target) {
  const std::optional<Product> product = product_of(block);
  const std::vector<Expr>& out = block.store->indices;
  std::vector<Iter> terms, rest;
  for (const Iter& iter : block.block->iters)
    (iter.kind == IterKind::Reduce ? terms : rest).push_back(iter);
  if (terms.size() != 2)
    return decline("`{}` runs over {} axes of terms, not over groups and what is in one",
                   block.name, terms.size());
  if (out.size() < 2 || rest.size() != out.size())
    return decline("what `{}` writes is no matrix with an iteration for each axis", block.name);
  for (size_t axis = 0; axis < out.size(); ++axis) {
    const VarRef* ref = out[axis].as<VarRef>();
    if (ref == nullptr || !(ref->var == rest[axis].var) || block.loop_of(ref->var).empty())
      return decline("axis {} of what `{}` writes is not run by a loop of its own", axis,
                     block.name);
  }
  const Iter &m = rest[rest.size() - 2], &n = rest.back(), &k = terms[0], &i = terms[1];
  const bool packed_last = product->b.indices.size() == 4 && mentions(product->b, n.var);
  const Load& weights = packed_last ? product->b : product->a;
  const Load& rows = packed_last ? product->a : product->b;
  const int64_t columns =
      weights.indices.size() != 4 ? 0 : as_int(weights.buffer.shape()[2]).value_or(0);
  const auto dot =
      hw::find_dot(target, rows.buffer.dtype(), weights.buffer.dtype(), columns, hw::DotKind::Tile);
  if (columns == 0)
    return decline("no factor of `{}` is packed in blocks of columns and groups of terms",
                   block.name);
  if (!dot || dot->acc != block.store->buffer.dtype() || as_int(i.extent) != dot->depth)
    return decline("no instruction multiplies small matrices of {} and {} in groups of {} terms",
                   name(rows.buffer.dtype()), name(weights.buffer.dtype()),
                   as_int(i.extent).value_or(0));
  if (!is_packed(weights, n.var, k.var, i.var, columns) ||
      !is_rows(rows, m.var, k.var, i.var, dot->depth) || mentions(rows, n.var))
    return decline("the factors of `{}` are no rows and packed columns of the same terms",
                   block.name);
  Tiles t{block.name, rows.buffer.name(), {}, {}, {}, {}, {}, columns, *dot};
  for (size_t axis = 0; axis + 2 < rest.size(); ++axis) t.batch.push_back(rest[axis].var.name());
  t.m = m.var.name(), t.n = n.var.name(), t.k = k.var.name(), t.i = i.var.name();
  choose_tile(t, as_int(m.extent).value_or(1), as_int(n.extent).value_or(columns), target);
  return t;
}

class MatrixRule {
 public:
  MatrixRule(Draft& draft, Tiles tiles, const hw::CpuTarget& target, int threads)
      : draft_(draft), t_(std::move(tiles)), target_(target), threads_(threads) {}

  bool run() {
    panels_ = t_.rows_operand + ".panels";
    return stage() && split() && place() && multiply() && finish() && pack();
  }

 private:
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }
  std::string loop(const std::string& iter) const { return t_.block + "." + iter; }

  /// Rows and sums get memory that is laid out as the instruction has them; what becomes an output
  /// as it is has such sums already.
  bool stage() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const bool staged = find_block(blocks, back()) != nullptr;
    sums_ = staged ? find_block(blocks, t_.block)->store->buffer.name() : t_.block + ".tile";
    schedule::Names iters = t_.batch;
    iters.insert(iters.end(), {t_.m, t_.k, t_.i});
    return attempt(schedule::Reindex{t_.block, t_.rows_operand, panels_, iters}) &&
           (staged || attempt(schedule::CacheWrite{t_.block, sums_, ""})) &&
           attempt(schedule::Pad{t_.block, t_.m, t_.pairs_of_rows * t_.dot.rows});
  }

  /// Strips of rows, columns, terms, the register tile in pairs, the instruction.
  bool split() {
    const std::string m = loop(t_.m), n = loop(t_.n);
    if (!attempt(schedule::Split{m, t_.pairs_of_rows * t_.dot.rows}) ||
        !attempt(schedule::Split{m + ".i", t_.dot.rows}) ||
        !attempt(schedule::Split{n, t_.pairs_of_columns * t_.dot.lanes}) ||
        !attempt(schedule::Split{n + ".i", t_.columns}) ||
        !attempt(schedule::Split{n + ".i.i", t_.dot.lanes}))
      return false;
    strip_ = m + ".o", anchor_ = n + ".o";
    pairs_ = {m + ".i.o", n + ".i.o", n + ".i.i.o"};
    schedule::Names order;
    for (const std::string& iter : t_.batch) order.push_back(loop(iter));
    order.insert(order.end(), {strip_, anchor_, loop(t_.k)});
    order.insert(order.end(), pairs_.begin(), pairs_.end());
    order.insert(order.end(), {m + ".i.i", n + ".i.i.i", loop(t_.i)});
    return attempt(schedule::Reorder{order});
  }

  /// `[.., m, n] -> [.., m/2, n/2, m%2, n%2]`, or of the rows: `[.., m, k, i] -> [.., m/2, k, m%2,
  /// i]`.
  bool pair_up(const std::string& buffer, bool sums) {
    std::string batch;
    for (size_t axis = 0; axis < t_.batch.size(); ++axis) batch += fmt::format("b{}, ", axis);
    const std::string map =
        sums ? fmt::format("[{0}m, n] -> [{0}m/{1}, n/{2}, m%{1}, n%{2}]", batch, t_.dot.rows,
                           t_.dot.lanes)
             : fmt::format("[{0}m, k, i] -> [{0}m/{1}, k, m%{1}, i]", batch, t_.dot.rows);
    return attempt(schedule::Layout{buffer, map});
  }

  /// What the columns of a strip share is made once for the strip, all else in the register tile.
  bool place() {
    const std::vector<BlockFacts> before = draft_.blocks();
    const Buffer result = find_block(before, back())->store->buffer;
    if (!attempt(schedule::ComputeAt{panels_, strip_}) || !pair_up(panels_, false) ||
        !attempt(schedule::ComputeAt{t_.block + ".init", anchor_}) ||
        !attempt(schedule::ReverseComputeAt{back(), anchor_}) || !pair_up(sums_, true))
      return false;
    if (!is_output(draft_.func(), result)) finishes_ = fuse_readers(draft_, result, anchor_);
    if (!finishes_.empty() && !attempt(schedule::SetScope{result.name(), "local"})) return false;
    return attempt(schedule::SetScope{sums_, "local"});
  }

  bool multiply() {
    return attempt(schedule::Tensorize{loop(t_.m) + ".i.i", print(t_.dot.intrinsic->meaning)}) &&
           std::all_of(pairs_.begin(), pairs_.end(),
                       [&](const std::string& pair) { return attempt(schedule::Unroll{pair}); });
  }

  /// Initial values and what moves sums side by side take the lanes that lie beside each other in
  /// both, what finishes them takes whole registers.
  bool finish() {
    const int64_t whole = target_.vector_bytes / 4;
    if (!lanes(t_.block + ".init", t_.dot.lanes) || !lanes(back(), t_.dot.lanes)) return false;
    for (const std::string& name : finishes_)
      if (!lanes(name, whole)) return false;
    draft_.done.insert({t_.block, t_.block + ".init", back(), panels_});
    return true;
  }

  bool lanes(const std::string& name, int64_t count) {
    const LoopNest nest = draft_.nest_inside(name, anchor_);
    if (nest.names.empty()) return false;
    std::string last = nest.names.back();
    if (nest.extents.back() > count) {
      if (!attempt(schedule::Split{last, count}) || !attempt(schedule::Unroll{last + ".o"}))
        return false;
      last += ".i";
    }
    for (size_t i = 0; i + 1 < nest.names.size(); ++i) attempt(schedule::Unroll{nest.names[i]});
    return attempt(schedule::Vectorize{last});
  }

  /// Packs rows in groups of terms, and gives threads the strips, or the columns of one.
  bool pack() {
    const LoopNest nest = draft_.nest_inside(panels_, strip_);
    if (nest.names.empty() || !attempt(schedule::Vectorize{nest.names.back()})) return false;
    const LoopNest all = draft_.nest_of(t_.block);
    int64_t strips = 1, work = t_.dot.depth * t_.dot.rows * t_.dot.lanes;
    for (size_t i = 0; i < all.names.size(); ++i) {
      if (i <= t_.batch.size()) strips *= all.extents[i];
      work *= all.extents[i];
    }
    if (threads_ < 2 || work < kParallelWork) return true;
    if (strips < threads_) return attempt(schedule::Parallel{anchor_});
    share_out(draft_, t_.block, strip_);
    return true;
  }

  std::string back() const { return t_.block + ".wb"; }

  Draft& draft_;
  Tiles t_;
  const hw::CpuTarget& target_;
  int threads_;
  std::string panels_, sums_, strip_, anchor_;
  schedule::Names pairs_;              ///< loops over the instructions of a register tile
  std::vector<std::string> finishes_;  ///< blocks that read the sums
};

}  // namespace

Answer<Done> schedule_matrices(Draft& draft, const hw::CpuTarget& target, int threads) {
  if (hw::dots_of(target, hw::DotKind::Tile).empty())
    return decline("the target has no instructions that multiply small matrices");
  Answer<Tiles> tiles = decline("the kernel has no sum of products");
  for (const BlockFacts& block : draft.blocks()) {
    if (!product_of(block)) continue;
    tiles = match(block, target);
    if (tiles) break;
  }
  if (!tiles) return decline("{}", tiles.error());
  return all_or_nothing(draft, [&] { return MatrixRule(draft, *tiles, target, threads).run(); });
}

}  // namespace tilewright::rules
