#include "tilewright/tune/register_tile.h"

#include <algorithm>
#include <cmath>

namespace tilewright::tune {
namespace {

/// Roles of a block's loops with respect to its operands.
struct Roles {
  Var vec;
  Var row, column;
  Var plane;  ///< a second row axis
  bool reuse =
      false;  ///< one operand is reused along the lanes: a product of a matrix with a vector
};

int64_t extent_of(const BlockFacts& block, const Var& var) {
  return var ? as_int(block.iter(var)->extent).value_or(1) : 1;
}

std::optional<Roles> roles_of(const BlockFacts& block, int64_t lanes) {
  const auto& out = block.store->indices;
  if (out.empty()) return std::nullopt;
  Roles roles;
  // The vector axis is the innermost axis of the result with more than one element.
  size_t last = out.size();
  while (last > 0 && as_int(block.store->buffer.shape()[last - 1]) == int64_t{1}) --last;
  if (last == 0) return std::nullopt;
  const VarRef* vec = out[last - 1].as<VarRef>();
  if (vec == nullptr || block.loop_of(vec->var).empty()) return std::nullopt;
  roles.vec = vec->var;
  const std::optional<Product> product = product_of(block);
  const Load* vector_operand = nullptr;
  const Load* other = nullptr;
  for (const Load& load : block.loads) {
    const std::optional<int64_t> stride = last_axis_stride(load, roles.vec, lanes);
    if (!stride || (*stride != 0 && *stride != 1)) return std::nullopt;
  }
  if (product) {
    const bool b_is_vector = mentions(product->b, roles.vec);
    vector_operand = b_is_vector ? &product->b : &product->a;
    other = b_is_vector ? &product->a : &product->b;
    if (!mentions(*vector_operand, roles.vec)) return std::nullopt;
    roles.reuse = !mentions(*other, roles.vec);
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

/// Instructions per output of covering `extent` rows by tiles of `rows`, `columns` vectors wide.
double tile_cost(int64_t extent, int64_t rows, int64_t columns) {
  constexpr double kLatencyBound = 8;  // accumulators needed to hide the FMA latency
  auto cycles = [&](int64_t r) {
    const double fma = static_cast<double>(r * columns);
    const double loads = static_cast<double>(columns) + 0.5 * static_cast<double>(r);
    return std::max({fma, loads, kLatencyBound}) + 1;
  };
  const int64_t full = extent / rows, rest = extent % rows;
  const double total = static_cast<double>(full) * cycles(rows) + (rest > 0 ? cycles(rest) + 2 : 0);
  return total / static_cast<double>(extent * columns);
}

}  // namespace

std::optional<RegisterTile> choose_register_tile(const BlockFacts& block,
                                                 const hw::CpuTarget& target) {
  const DType dtype = block.store->buffer.dtype();
  const int64_t lanes = std::max(1, target.lanes(bit_width(accumulator(dtype))));
  const std::optional<Roles> roles = roles_of(block, lanes);
  if (!roles) return std::nullopt;
  const int64_t vec_extent = extent_of(block, roles->vec);
  const int64_t row_extent = extent_of(block, roles->row);
  const int64_t column_extent = extent_of(block, roles->column);
  const int64_t max_vectors = roles->column ? 1 : std::max<int64_t>(1, vec_extent / lanes);

  // Without reuse, rows only share loads of overlapping windows: a few are enough, and fewer where
  // each is long, since the taps of all of them are written out.
  constexpr int64_t kWrittenTaps = 128;
  int64_t taps = 1;
  for (const Iter& iter : block.block->iters)
    if (iter.kind == IterKind::Reduce) taps *= as_int(iter.extent).value_or(kWrittenTaps);
  const int64_t max_rows =
      roles->reuse ? 28 : std::clamp<int64_t>(kWrittenTaps / std::max<int64_t>(taps, 1), 4, 8);

  RegisterTile best;
  double least = INFINITY;
  for (int64_t columns : {1, 2, 3, 4, 6, 8}) {
    if (columns > std::max(column_extent, max_vectors)) break;
    if (roles->column && column_extent % columns != 0) continue;
    if (columns > 4 && row_extent > 1) continue;
    const int64_t budget = target.vector_registers - 1 - columns;
    for (int64_t rows = 1; rows <= std::min(row_extent, max_rows); ++rows) {
      if (rows * columns > std::min<int64_t>(budget, 28)) break;
      double cost = tile_cost(row_extent, rows, columns);
      if (!roles->column && columns > 1) {  // a ragged last tile of columns is masked work
        const int64_t tile = lanes * columns;
        const double covered =
            std::ceil(static_cast<double>(vec_extent) / static_cast<double>(tile));
        cost *= covered * static_cast<double>(tile) / static_cast<double>(vec_extent);
      }
      if (cost >= least) continue;
      least = cost;
      best = {};
      best.row = {roles->row ? block.loop_of(roles->row) : "", row_extent, rows};
      if (roles->column) {
        best.column = {block.loop_of(roles->column), column_extent, columns};
      } else {
        best.vectors = columns;
      }
    }
  }
  const int64_t used = best.row.tile * std::max(best.column.tile, best.vectors);
  const int64_t free =
      std::min<int64_t>(28, target.vector_registers - 1 - std::max(best.column.tile, best.vectors));
  const int64_t plane = std::min(extent_of(block, roles->plane), free / std::max<int64_t>(used, 1));
  if (roles->reuse && roles->plane && best.row.tile == row_extent && plane > 1)
    best.plane = {block.loop_of(roles->plane), extent_of(block, roles->plane), plane};
  best.vec = {block.loop_of(roles->vec), vec_extent, std::min(vec_extent, lanes * best.vectors)};
  return best;
}

}  // namespace tilewright::tune
