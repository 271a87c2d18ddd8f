// The roles of a block's loops, from which axes its operands move with. In C[m, n] += A[m, k] *
// B[k, n] lanes run along n, the last axis of the result; B, which moves with n, is read as
// vectors; A does not, so one of its elements serves all lanes; rows run along m, on which a vector
// of B is used again. In a convolution on channel blocks, further blocks of output channels are
// columns. The roles make the block a contraction for the cost model, whose fastest point is turned
// into a tile.
#include "tilewright/rules/cpu/register_tile.h"

#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/skip_padding.h"
#include "tilewright/rules/cpu/transpose.h"

namespace tilewright::rules {
namespace {

/// Roles of a block's loops with respect to its operands.
struct Roles {
  Var vec;
  Var row, column;
  Var plane;  ///< a second row axis
  bool reuse =
      false;  ///< one operand is reused along the lanes: a product of a matrix with a vector
  bool narrow = false;  ///< that operand is narrower than the sum (bytes, bf16)
};

int64_t extent_of(const BlockFacts& block, const Var& var) {
  return var ? std::max<int64_t>(block.extent_of(var), 1) : 1;
}

Answer<Roles> roles_of(const BlockFacts& block, int64_t lanes) {
  const auto& out = block.store->indices;
  Roles roles;
  // The vector axis is the innermost axis of the result with more than one element.
  size_t last = out.size();
  while (last > 0 && as_int(block.store->buffer.shape()[last - 1]) == int64_t{1}) --last;
  if (last == 0) return decline("the sum `{}` has one result", block.name);
  const VarRef* vec = out[last - 1].as<VarRef>();
  if (vec == nullptr || block.loop_of(vec->var).empty())
    return decline("no loop runs along the last axis of what `{}` writes", block.name);
  roles.vec = vec->var;
  const std::optional<Product> product = product_of(block);
  const Load* vector_operand = nullptr;
  const Load* other = nullptr;
  for (const Load& load : block.loads) {
    const std::optional<int64_t> stride = last_axis_stride(load, roles.vec, lanes);
    // Every other element costs two loads and a shuffle: still a vector.
    if (!stride)
      return decline("vector lanes run along the last axis of `{}`, but not along that of `{}`",
                     block.store->buffer.name(), load.buffer.name());
    if (*stride < 0 || *stride > 2)
      return decline("neighbours along the vector lanes are {} elements apart in `{}`", *stride,
                     load.buffer.name());
  }
  if (product) {
    const bool b_is_vector = mentions(product->b, roles.vec);
    vector_operand = b_is_vector ? &product->b : &product->a;
    other = b_is_vector ? &product->a : &product->b;
    if (!mentions(*vector_operand, roles.vec))
      return decline("no factor of `{}` moves with the vector lanes", block.name);
    roles.reuse = !mentions(*other, roles.vec);
    roles.narrow =
        bit_width(other->buffer.dtype()) < bit_width(accumulator(block.store->buffer.dtype()));
  }
  for (size_t axis = last - 1; axis-- > 0;) {
    const VarRef* ref = out[axis].as<VarRef>();
    if (ref == nullptr || block.loop_of(ref->var).empty() || extent_of(block, ref->var) == 1)
      continue;
    // Where both operands vary with the lanes (depthwise), the rows are what the weights are reused
    // on.
    const bool depthwise = product && mentions(*other, roles.vec);
    const bool in_vector = vector_operand != nullptr && mentions(*vector_operand, ref->var);
    const bool in_other = other != nullptr && mentions(*other, ref->var);
    const bool row = product ? (depthwise ? in_vector != in_other : !in_vector && in_other) : true;
    if (row && roles.row && !roles.plane) roles.plane = ref->var;
    if (row && !roles.row) roles.row = ref->var;
    if (product && !depthwise && in_vector && !in_other && !roles.column) roles.column = ref->var;
  }
  return roles;
}

/// An index as terms in the axes; a term that is no plain part of one axis counts as that axis.
cost::Index index_of(const Expr& e, int64_t extent, const std::vector<Var>& axes) {
  cost::Index index;
  index.extent = extent;
  auto axis_of = [&](const Var& var) {
    const auto at = std::find(axes.begin(), axes.end(), var);
    return at == axes.end() ? -1 : static_cast<int>(at - axes.begin());
  };
  for (const auto& [term, coefficient] : arith::as_affine(e).terms) {
    const VarRef* plain = term.as<VarRef>();
    const Binary* part = term.as<Binary>();
    const VarRef* of = part == nullptr ? nullptr : part->a.as<VarRef>();
    const int64_t by = part == nullptr ? 0 : as_int(part->b).value_or(0);
    if (plain != nullptr) {
      if (axis_of(plain->var) >= 0) index.terms.push_back({axis_of(plain->var), coefficient, 1, 0});
    } else if (of != nullptr && by > 0 && part->op == BinaryOp::Div && axis_of(of->var) >= 0) {
      index.terms.push_back({axis_of(of->var), coefficient, by, 0});
    } else if (of != nullptr && by > 0 && part->op == BinaryOp::Mod && axis_of(of->var) >= 0) {
      index.terms.push_back({axis_of(of->var), coefficient, 1, by});
    } else {
      for (const Var& var : free_vars(term))
        if (axis_of(var) >= 0) index.terms.push_back({axis_of(var), coefficient, 1, 0});
    }
  }
  return index;
}

}  // namespace

cost::Operand operand_of(const Buffer& buffer, const std::vector<Expr>& indices,
                         const std::vector<Var>& axes) {
  cost::Operand operand;
  operand.element_bytes = std::max(1, bit_width(buffer.dtype()) / 8);
  for (size_t i = 0; i < indices.size(); ++i)
    operand.indices.push_back(index_of(indices[i], as_int(buffer.shape()[i]).value_or(1), axes));
  return operand;
}

namespace {

/// What the conditions of the block's terms say of one axis of the result and one of the sum.
std::vector<cost::Inside> insides_of(const BlockFacts& block, const cost::Contraction& c,
                                     const std::vector<Var>& axes) {
  std::vector<cost::Inside> insides;
  for (const WindowTerm& term : window_terms(block)) {
    const auto at = [&](const Var& var) {
      return static_cast<int>(std::find(axes.begin(), axes.end(), var) - axes.begin());
    };
    cost::Inside inside{at(term.place), at(term.tap), term.stride,
                        term.dilation,  term.begin,   term.extent};
    if (inside.axis != c.lanes && inside.axis != c.columns) insides.push_back(inside);
  }
  return insides;
}

cost::Contraction describe_block(const BlockFacts& block, const Roles& roles, int64_t lanes,
                                 MathMode math) {
  cost::Contraction c;
  std::vector<Var> axes;
  for (const Iter& iter : block.block->iters) {
    axes.push_back(iter.var);
    c.axes.push_back(
        {block.loop_of(iter.var), extent_of(block, iter.var), iter.kind == IterKind::Reduce});
  }
  auto axis_of = [&](const Var& var) {
    const auto at = std::find(axes.begin(), axes.end(), var);
    return !var || at == axes.end() ? -1 : static_cast<int>(at - axes.begin());
  };
  std::vector<Load> loads = block.loads;
  if (const std::optional<Product> product = product_of(block)) {
    const bool b_is_vector = mentions(product->b, roles.vec);
    loads = b_is_vector ? std::vector<Load>{product->a, product->b}
                        : std::vector<Load>{product->b, product->a};
  }
  for (const Load& load : loads) c.operands.push_back(operand_of(load.buffer, load.indices, axes));
  if (loads.size() == 2 && roles.reuse) c.operands[1].constant = true;
  c.operands.push_back(operand_of(block.store->buffer, block.store->indices, axes));
  c.lane_operand = loads.size() == 2 ? 1 : 0;
  c.lanes = axis_of(roles.vec);
  c.columns = axis_of(roles.column);
  c.rows = axis_of(roles.row);
  c.plane = roles.reuse ? axis_of(roles.plane) : -1;
  c.dtype = block.store->buffer.dtype();
  c.lane_count = static_cast<int>(lanes);
  c.reuse = roles.reuse;
  c.narrow = roles.narrow;
  c.fused = math == MathMode::Fast || !is_float(c.dtype);
  c.counted = block.counted();
  if (c.reuse) c.insides = insides_of(block, c, axes);
  return c;
}

}  // namespace

Answer<TiledBlock> tiled_block(const BlockFacts& block, const hw::CpuTarget& target,
                               MathMode math) {
  const DType dtype = block.store->buffer.dtype();
  const int64_t lanes = std::max(1, target.lanes(bit_width(accumulator(dtype))));
  const Answer<Roles> roles = roles_of(block, lanes);
  if (!roles) return decline("{}", roles.error());
  return TiledBlock{describe_block(block, *roles, lanes, math)};
}

namespace {

/// What the copy that brings the finished `sum` out of its order writes, in the axes of the sum;
/// absent if the one block that reads it is no such copy, nor one that finishes the sum before.
std::optional<cost::Operand> left_by_copy(const BlockFacts& sum,
                                          const std::vector<BlockFacts>& blocks) {
  const BlockFacts* copy = &sum;
  const size_t rank = sum.store->indices.size();
  for (size_t steps = 0; copy == &sum || !turns(*copy); ++steps) {
    if (steps == blocks.size()) return std::nullopt;  // blocks that read each other's results
    std::vector<const BlockFacts*> next = readers(blocks, copy->store->buffer);
    std::erase(next, copy);
    if (next.size() != 1 || next[0]->kind != BlockFacts::Kind::Injective) return std::nullopt;
    if (!turns(*next[0]) && next[0]->store->indices.size() != rank) return std::nullopt;
    copy = next[0];
  }
  // Where the copy reads `c` along an axis, `c` is that axis of the sum; where it reads `c / 16`
  // and `c % 16`, it is 16 times the one and the other.
  std::vector<Var> axes;
  for (const Iter& iter : sum.block->iters) axes.push_back(iter.var);
  VarMap places;
  for (size_t i = 0; i < sum.store->indices.size(); ++i) {
    const Expr& read = copy->loads[0].indices[i];
    const Binary* part = read.as<Binary>();
    const VarRef* axis = part == nullptr ? read.as<VarRef>() : part->a.as<VarRef>();
    if (axis == nullptr) continue;
    const bool quotient = part != nullptr && part->op == BinaryOp::Div;
    const Expr here = quotient ? sum.store->indices[i] * part->b : sum.store->indices[i];
    const auto [at, first] = places.emplace(axis->var, here);
    if (!first) at->second = at->second + here;
  }
  std::vector<Expr> written;
  for (const Expr& index : copy->store->indices) written.push_back(substitute(index, places));
  return operand_of(copy->store->buffer, written, axes);
}

}  // namespace

Answer<TiledBlock> tiled_block(const BlockFacts& block, const std::vector<BlockFacts>& blocks,
                               const hw::CpuTarget& target, MathMode math) {
  Answer<TiledBlock> tiled = tiled_block(block, target, math);
  if (tiled) tiled->contraction.left = left_by_copy(block, blocks);
  return tiled;
}

RegisterTile TiledBlock::at(const cost::TilePoint& point) const {
  const cost::Contraction& c = contraction;
  auto tiled = [&](int axis, int64_t tile) {
    if (axis < 0) return TiledLoop{};
    const cost::ContractionAxis& a = c.axes[static_cast<size_t>(axis)];
    return TiledLoop{a.name, a.extent, std::min(tile, a.extent)};
  };
  RegisterTile tile;
  tile.row = tiled(c.rows, point.rows);
  if (point.plane > 1) tile.plane = tiled(c.plane, point.plane);
  tile.column = tiled(c.columns, point.columns);
  tile.vectors = c.columns >= 0 ? 1 : point.columns;
  tile.vec = tiled(c.lanes, tile.vectors * c.lane_count);
  tile.reuse = c.reuse;
  tile.rows_outside = point.rows_outside;
  tile.ahead = point.ahead;
  tile.block = point.block;
  tile.unroll = point.unroll;
  tile.pieces = point.pieces;
  return tile;
}

std::optional<RegisterTile> choose_register_tile(const BlockFacts& block,
                                                 const hw::CpuTarget& target, int threads,
                                                 MathMode math, TileRows rows) {
  const Answer<TiledBlock> tiled = tiled_block(block, target, math);
  if (!tiled) return std::nullopt;
  for (const cost::RankedPoint& ranked : cost::rank_points(tiled->contraction, target, threads))
    if (RegisterTile tile = tiled->at(ranked.point); rows == TileRows::Any || tile.row.exact())
      return tile;
  return std::nullopt;
}

}  // namespace tilewright::rules
