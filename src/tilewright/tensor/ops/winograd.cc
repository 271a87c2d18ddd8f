// Convolutions of stride 1 with fewer multiplications, on blocked channels. Each transform is
// one-sided, so that a two-sided one costs 2 n^3 instead of n^4; an axis with one tap needs none.
#include "tilewright/tensor/winograd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/integers.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"
#include "tilewright/tensor/winograd_rows.h"

namespace tilewright::tensor {
namespace {

Expr plus(const Expr& a, const Expr& b) { return !a ? b : !b ? a : a + b; }

}  // namespace

Expr sum_of(const Coefficients& c, const Terms& term) {
  double size = 0;
  bool common = true, positive = false;
  for (const double x : c) {
    if (x == 0) continue;
    common &= size == 0 || size == std::abs(x);
    positive |= x > 0;
    size = std::abs(x);
  }
  const double factor = common ? size : 1;
  Expr sum;
  for (const bool negative : {false, true})
    for (size_t j = 0; j < c.size(); ++j) {
      if (c[j] == 0 || (positive && (c[j] < 0) != negative) || (!positive && negative)) continue;
      const double scale = std::abs(c[j]) / factor;
      const Expr value = term(static_cast<int64_t>(j));
      const Expr product = scale == 1 ? value : value * constant(DType::F32, scale);
      sum = !sum ? product : negative ? sum - product : sum + product;
    }
  if (!sum) return sum;
  const double signed_factor = positive ? factor : -factor;
  return signed_factor == 1 ? sum : sum * constant(DType::F32, signed_factor);
}

Expr input_row(const Coefficients& row, const Terms& term) {
  Coefficients even = row, odd = row;
  for (size_t j = 0; j < row.size(); ++j) (j % 2 == 0 ? odd : even)[j] = 0;
  const auto last = std::find_if(odd.rbegin(), odd.rend(), [](double x) { return x != 0; });
  const bool minus = last != odd.rend() && *last < 0;
  if (minus)
    for (double& x : odd) x = -x;
  const Expr a = sum_of(even, term), b = sum_of(odd, term);
  if (!minus || !a) return minus ? constant(DType::F32, 0) - b : plus(a, b);
  return a - b;
}

Expr output_row(const Coefficients& row, const Terms& term) {
  Expr sum;
  for (size_t j = 0; j < row.size(); j += j % 2 == 0 ? 1 : 2) {
    Coefficients pair(row.size(), 0);
    pair[j] = row[j];
    if (j % 2 == 1 && j + 1 < row.size()) pair[j + 1] = row[j + 1];
    sum = plus(sum, sum_of(pair, term));
  }
  return sum;
}

Expr row_of(const std::vector<double>& matrix, int64_t rows, const Expr& at, RowRule rule,
            const Terms& term) {
  const auto n = static_cast<std::ptrdiff_t>(matrix.size()) / rows;
  const auto row = [&](int64_t r) {
    return rule(Coefficients(matrix.begin() + r * n, matrix.begin() + (r + 1) * n), term);
  };
  Expr value = row(rows - 1);
  for (int64_t r = rows - 1; r-- > 0;) value = select(eq(at, int_imm(r)), row(r), value);
  return value;
}

namespace {

using Tensors = std::vector<Tensor>;

/// Image i of the batch uses set i % sets of the filters: a grouped convolution, its groups in the
/// batch.
int64_t filter_sets(const OpCall& call) { return call.attrs.get_int("filter_sets", 1); }

/// The transforms along rows and columns; null where none are known.
struct Sides {
  const WinogradTables *rows = nullptr, *columns = nullptr;
  bool both() const { return rows->taps > 1 && columns->taps > 1; }
};

Sides sides_of(const Shape& u, int64_t m) {
  const auto [r, s] = winograd_taps(u, m);
  const auto side = [m](int64_t taps, int64_t points) {
    const WinogradTables* tables = winograd_tables(taps == 1 ? 1 : m, taps);
    return tables != nullptr && tables->points() == points ? tables : nullptr;
  };
  return {side(r, u[1]), side(s, u[2])};
}

int64_t tile_of(const OpCall& call) { return call.attrs.get_int("m", 4); }

Result<Window> window_of_call(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Float));
  TW_TRY_STATUS(require_rank(call, 0, 5));
  TW_TRY_STATUS(require_rank(call, 1, 5));
  const int64_t m = tile_of(call);
  const Shape &x = call.inputs[0].shape, &u = call.inputs[1].shape;
  const Sides sides = sides_of(u, m);
  if (sides.rows == nullptr || sides.columns == nullptr || (u[1] == 1 && u[2] == 1))
    return invalid(call, fmt::format("m is {}, the transformed weight {}", m, to_string(u)),
                   "windows of 2 taps or more with 4, 5, 6, 8 or 10 points are known");
  if (call.inputs[0].dtype != DType::F32 || u[3] != x[1] * x[4])
    return invalid(call, fmt::format("input {} and transformed weight {} do not fit m = {}",
                                     to_string(x), to_string(u), m));
  const int64_t sets = filter_sets(call);
  if (sets < 1 || x[0] % sets != 0 || u[0] % sets != 0)
    return invalid(call, fmt::format("{} sets of filters for input {} and weight {}", sets,
                                     to_string(x), to_string(u)));
  TW_TRY_STATUS(require_shape(call, 2, {u[0] * u[4]}));
  const Window window =
      TW_TRY(window_of(call, {x[2], x[3]}, {sides.rows->taps, sides.columns->taps}));
  if (window.strides != std::vector<int64_t>{1, 1} ||
      window.dilations != std::vector<int64_t>{1, 1})
    return invalid(call, "only stride 1 without dilation has this form");
  return window;
}

Inferred infer_winograd(const OpCall& call) {
  const Window window = TW_TRY(window_of_call(call));
  const Shape &x = call.inputs[0].shape, &u = call.inputs[1].shape;
  return std::vector<TensorType>{
      {DType::F32, {x[0], u[0] / filter_sets(call), window.output[0], window.output[1], u[4]}}};
}

/// The input of each tile, column by column. `begin`: padding before rows and columns.
Tensor pixels_of(const Tensor& x, const Sides& sides, int64_t tiles, int64_t columns,
                 const std::vector<int64_t>& begin) {
  return compute("wino_pixels",
                 {{"n", x.dim(0)},
                  {"co", x.dim(1)},
                  {"t", tiles},
                  {"b", sides.columns->points()},
                  {"a", sides.rows->points()},
                  {"ci", x.dim(4)}},
                 [&](const Indices& at) {
                   const Expr h = affine(at[2] / columns, sides.rows->m, -begin[0]) + at[4];
                   const Expr w = affine(at[2] % columns, sides.columns->m, -begin[1]) + at[3];
                   const Expr valid =
                       both(inside(h, -1, x.dim(2), x.dim(2)), inside(w, -1, x.dim(3), x.dim(3)));
                   return guarded(valid, x({at[0], at[1], h, w, at[5]}), constant(DType::F32, 0));
                 });
}

/// B^T d B of each tile.
Tensor transformed(const Tensor& pixels, const Sides& sides) {
  const int64_t nx = sides.rows->points(), ny = sides.columns->points();
  const Dim n{"n", pixels.dim(0)}, co{"co", pixels.dim(1)}, t{"t", pixels.dim(2)},
      ci{"ci", pixels.dim(5)};
  Tensor half;
  if (sides.both())
    half = compute("wino_rows", {n, co, t, {"x", nx}, {"b", ny}, ci}, [&](const Indices& at) {
      return row_of(sides.rows->input, nx, at[3], input_row, [&](int64_t a) {
        return pixels({at[0], at[1], at[2], at[4], int_imm(a), at[5]});
      });
    });
  const auto value = [&](const Indices& at) {
    if (ny == 1)
      return row_of(sides.rows->input, nx, at[1], input_row, [&](int64_t a) {
        return pixels({at[0], at[3], at[4], at[2], int_imm(a), at[5]});
      });
    return row_of(sides.columns->input, ny, at[2], input_row, [&](int64_t b) {
      return nx == 1 ? pixels({at[0], at[3], at[4], int_imm(b), at[1], at[5]})
                     : half({at[0], at[3], at[4], at[1], int_imm(b), at[5]});
    });
  };
  return compute("wino_in", {n, {"x", nx}, {"y", ny}, co, t, ci}, value);
}

/// A^T m of each tile, for one side; the whole inverse where there is only one.
Tensor half_inverse(const Tensor& sum, const Sides& sides) {
  const bool across = sides.rows->taps == 1;
  const WinogradTables& side = across ? *sides.columns : *sides.rows;
  const Dim y{"y", across ? 1 : sides.columns->points()};
  return compute("wino_half",
                 {{"n", sum.dim(0)},
                  {"ko", sum.dim(3)},
                  {"t", sum.dim(4)},
                  {"i", side.m},
                  y,
                  {"ki", sum.dim(5)}},
                 [&](const Indices& at) {
                   return row_of(side.output, side.m, at[3], output_row, [&](int64_t a) {
                     const Expr point = int_imm(a);
                     return across ? sum({at[0], at[4], point, at[1], at[2], at[5]})
                                   : sum({at[0], point, at[4], at[1], at[2], at[5]});
                   });
                 });
}

/// The tensors are called wino_pixels, wino_rows (two sides only), wino_in, wino_sum, wino_half,
/// wino: the schedule rule knows them by these names (rules/cpu/winograd.h).
Tensors define_winograd(const OpCall& call, const Tensors& in) {
  const Window window = *window_of_call(call);
  const Shape shape = (*infer_winograd(call))[0].shape;
  const Tensor &x = in[0], &u = in[1];
  const Sides sides = sides_of(call.inputs[1].shape, tile_of(call));
  const int64_t mh = sides.rows->m, mw = sides.columns->m;
  const int64_t rows = ceil_div(shape[2], mh), columns = winograd_columns(shape[2], shape[3], mw);
  const int64_t block = x.dim(4);
  const auto filter = [&, sets = filter_sets(call)](const Expr& image, const Expr& ko) {
    return sets == 1 ? ko : affine(image % sets, shape[1]) + ko;
  };
  const Tensor v = transformed(pixels_of(x, sides, rows * columns, columns, window.begin), sides);
  const Tensor sum = reduce(
      "wino_sum",
      {{"n", shape[0]},
       {"x", sides.rows->points()},
       {"y", sides.columns->points()},
       {"ko", shape[1]},
       {"t", rows * columns},
       {"ki", shape[4]}},
      {{"co", x.dim(1)}, {"ci", block}}, Combine::Add, [&](const Indices& at, const Indices& r) {
        return v({at[0], at[1], at[2], r[0], at[4], r[1]}) *
               u({filter(at[0], at[3]), at[1], at[2], affine(r[0], block) + r[1], at[5]});
      });
  const Tensor half = half_inverse(sum, sides);
  return {compute(
      "wino",
      {{"n", shape[0]}, {"ko", shape[1]}, {"h", shape[2]}, {"w", shape[3]}, {"ki", shape[4]}},
      [&](const Indices& at) {
        const Expr tile = affine(at[2] / mh, columns) + at[3] / mw;
        const auto part = [&](const Expr& i, const Expr& y) {
          return half({at[0], at[1], tile, i, y, at[4]});
        };
        Expr value;
        if (sides.both())
          value = row_of(sides.columns->output, mw, at[3] % mw, output_row,
                         [&](int64_t b) { return part(at[2] % mh, int_imm(b)); });
        else
          value = part(mh == 1 ? at[3] % mw : at[2] % mh, int_imm(0));
        if (!call.input(2)) return value;
        return value + in[2]({affine(filter(at[0], at[1]), shape[4]) + at[4]});
      })};
}

// --- Weights: u[ko, x, y, c, ki] = (G g G^T)[x, y]: what one block of filters needs lies together.

/// requires: a weight [k, c, r, s].
Sides pack_sides(const OpCall& call) {
  const Shape& w = call.inputs[0].shape;
  const int64_t m = tile_of(call);
  return {winograd_tables(w[2] == 1 ? 1 : m, w[2]), winograd_tables(w[3] == 1 ? 1 : m, w[3])};
}

Inferred infer_pack_winograd(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  TW_TRY_STATUS(require_float(call));
  const Shape& w = call.inputs[0].shape;
  const int64_t in = call.attrs.get_int("block_in", 0), out = call.attrs.get_int("block_out", 0);
  const Sides sides = pack_sides(call);
  if (sides.rows == nullptr || sides.columns == nullptr || in < 1 || out < 1)
    return invalid(call, fmt::format("a weight {} with blocks {} and {} for m = {}", to_string(w),
                                     in, out, tile_of(call)));
  return std::vector<TensorType>{{DType::F32,
                                  {(w[0] + out - 1) / out, sides.rows->points(),
                                   sides.columns->points(), (w[1] + in - 1) / in * in, out}}};
}

Tensors define_pack_winograd(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_winograd(call))[0].shape;
  const Sides sides = pack_sides(call);
  const Tensor half =
      compute("pack_half", {{"k", w.dim(0)}, {"c", w.dim(1)}, {"x", shape[1]}, {"s", w.dim(3)}},
              [&](const Indices& at) {
                return row_of(sides.rows->filter, shape[1], at[2], sum_of, [&](int64_t r) {
                  return cast(DType::F32, w({at[0], at[1], int_imm(r), at[3]}));
                });
              });
  return {
      compute("pack_winograd", dims_of(shape, {"ko", "x", "y", "c", "ki"}), [&](const Indices& at) {
        const Expr k = affine(at[0], shape[4]) + at[4];
        const Expr value = row_of(sides.columns->filter, shape[2], at[2], sum_of,
                                  [&](int64_t s) { return half({k, at[3], at[1], int_imm(s)}); });
        const Expr valid =
            both(inside(k, 0, w.dim(0), w.dim(0)), inside(at[3], 0, w.dim(1), w.dim(1)));
        const bool exact = shape[0] * shape[4] == w.dim(0) && shape[3] == w.dim(1);
        return exact ? value : guarded(valid, value, constant(DType::F32, 0));
      })};
}

}  // namespace

void add_winograd_ops(std::vector<OpDef>& table) {
  const char* ours = "tilewright";
  table.push_back({ours,
                   "WinogradConvBlocked",
                   2,
                   3,
                   Fusion::Complex,
                   {},
                   infer_winograd,
                   define_winograd,
                   ""});
  table.push_back({ours,
                   "PackWinogradWeight",
                   1,
                   1,
                   Fusion::Opaque,
                   {},
                   infer_pack_winograd,
                   define_pack_winograd,
                   ""});
}

}  // namespace tilewright::tensor
