// 3x3 convolutions of stride 1 with fewer multiplications, on blocked channels. Each transform is
// one-sided, so that a two-sided one costs 2 n^3 instead of n^4.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"
#include "tilewright/tensor/winograd.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

using Terms = std::function<Expr(int64_t)>;
using Coefficients = std::vector<double>;

/// Sum of c[j] * term(j) over c[j] != 0, positive ones first; absent if there is none. A factor
/// that all have is applied to the sum, so that the sums of two rows are the same expression.
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

Expr plus(const Expr& a, const Expr& b) { return !a ? b : !b ? a : a + b; }

/// One row of B^T: of the rows for points p and -p, one is the sum and one the difference of the
/// terms at even and at odd places.
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

/// One row of A^T: points p and -p stand side by side and differ in the sign at most.
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

using RowRule = Expr (*)(const Coefficients&, const Terms&);

/// Row `at` of matrix * vector, where the row is an index: constant once its loop is unrolled.
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

/// Image i of the batch uses set i % sets of the filters: a grouped convolution, its groups in the
/// batch.
int64_t filter_sets(const OpCall& call) { return call.attrs.get_int("filter_sets", 1); }

Result<Window> window_of_call(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Float));
  TW_TRY_STATUS(require_rank(call, 0, 5));
  TW_TRY_STATUS(require_rank(call, 1, 5));
  const int64_t m = call.attrs.get_int("m", 4);
  const WinogradTables* tables = winograd_tables(m);
  if (tables == nullptr) return invalid(call, fmt::format("m is {}", m), "2, 4 and 6 are known");
  const Shape &x = call.inputs[0].shape, &u = call.inputs[1].shape;
  if (call.inputs[0].dtype != DType::F32 || u[1] != tables->points() || u[2] != u[1] ||
      u[3] != x[1] * x[4])
    return invalid(call, fmt::format("input {} and transformed weight {} do not fit m = {}",
                                     to_string(x), to_string(u), m));
  const int64_t sets = filter_sets(call);
  if (sets < 1 || x[0] % sets != 0 || u[0] % sets != 0)
    return invalid(call, fmt::format("{} sets of filters for input {} and weight {}", sets,
                                     to_string(x), to_string(u)));
  TW_TRY_STATUS(require_shape(call, 2, {u[0] * u[4]}));
  const Window window = TW_TRY(window_of(call, {x[2], x[3]}, {3, 3}));
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

/// The tensors are called wino_pixels, wino_rows, wino_in, wino_sum, wino_half, wino: the schedule
/// rule knows them by these names (tune/winograd_schedule.h).
Tensors define_winograd(const OpCall& call, const Tensors& in) {
  const Window window = *window_of_call(call);
  const Shape shape = (*infer_winograd(call))[0].shape;
  const WinogradTables& tables = *winograd_tables(call.attrs.get_int("m", 4));
  const int64_t m = tables.m, n = tables.points();
  const Tensor &x = in[0], &u = in[1];
  const int64_t rows = (shape[2] + m - 1) / m, columns = (shape[3] + m - 1) / m;
  const int64_t block = x.dim(4), tiles = rows * columns;
  const auto filter = [&, sets = filter_sets(call)](const Expr& image, const Expr& ko) {
    return sets == 1 ? ko : affine(image % sets, shape[1]) + ko;
  };
  // The input of a tile, column by column.
  const Tensor pixels =
      compute("wino_pixels",
              {{"n", shape[0]}, {"co", x.dim(1)}, {"t", tiles}, {"b", n}, {"a", n}, {"ci", block}},
              [&](const Indices& at) {
                const Expr h = affine(at[2] / columns, m, -window.begin[0]) + at[4];
                const Expr w = affine(at[2] % columns, m, -window.begin[1]) + at[3];
                const Expr valid =
                    both(inside(h, -1, x.dim(2), x.dim(2)), inside(w, -1, x.dim(3), x.dim(3)));
                return guarded(valid, x({at[0], at[1], h, w, at[5]}), constant(DType::F32, 0));
              });
  const Tensor half_in =
      compute("wino_rows",
              {{"n", shape[0]}, {"co", x.dim(1)}, {"t", tiles}, {"x", n}, {"b", n}, {"ci", block}},
              [&](const Indices& at) {
                return row_of(tables.input, n, at[3], input_row, [&](int64_t a) {
                  return pixels({at[0], at[1], at[2], at[4], int_imm(a), at[5]});
                });
              });
  const Tensor v =
      compute("wino_in",
              {{"n", shape[0]}, {"x", n}, {"y", n}, {"co", x.dim(1)}, {"t", tiles}, {"ci", block}},
              [&](const Indices& at) {
                return row_of(tables.input, n, at[2], input_row, [&](int64_t b) {
                  return half_in({at[0], at[3], at[4], at[1], int_imm(b), at[5]});
                });
              });
  const Tensor sum = reduce(
      "wino_sum",
      {{"n", shape[0]}, {"x", n}, {"y", n}, {"ko", shape[1]}, {"t", tiles}, {"ki", shape[4]}},
      {{"co", x.dim(1)}, {"ci", block}}, Combine::Add, [&](const Indices& at, const Indices& r) {
        return v({at[0], at[1], at[2], r[0], at[4], r[1]}) *
               u({filter(at[0], at[3]), at[1], at[2], affine(r[0], block) + r[1], at[5]});
      });
  const Tensor half_out = compute(
      "wino_half",
      {{"n", shape[0]}, {"ko", shape[1]}, {"t", tiles}, {"i", m}, {"y", n}, {"ki", shape[4]}},
      [&](const Indices& at) {
        return row_of(tables.output, m, at[3], output_row, [&](int64_t a) {
          return sum({at[0], int_imm(a), at[4], at[1], at[2], at[5]});
        });
      });
  return {compute(
      "wino",
      {{"n", shape[0]}, {"ko", shape[1]}, {"h", shape[2]}, {"w", shape[3]}, {"ki", shape[4]}},
      [&](const Indices& at) {
        const Expr tile = affine(at[2] / m, columns) + at[3] / m;
        const Expr value = row_of(tables.output, m, at[3] % m, output_row, [&](int64_t b) {
          return half_out({at[0], at[1], tile, at[2] % m, int_imm(b), at[4]});
        });
        if (!call.input(2)) return value;
        return value + in[2]({affine(filter(at[0], at[1]), shape[4]) + at[4]});
      })};
}

// --- Weights: u[ko, x, y, c, ki] = (G g G^T)[x, y]: what one block of filters needs lies together.

Inferred infer_pack_winograd(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  TW_TRY_STATUS(require_float(call));
  const Shape& w = call.inputs[0].shape;
  const int64_t in = call.attrs.get_int("block_in", 0), out = call.attrs.get_int("block_out", 0);
  const WinogradTables* tables = winograd_tables(call.attrs.get_int("m", 4));
  if (tables == nullptr || in < 1 || out < 1 || w[2] != 3 || w[3] != 3)
    return invalid(call, fmt::format("a weight {} with blocks {} and {}", to_string(w), in, out));
  const int64_t n = tables->points();
  return std::vector<TensorType>{
      {DType::F32, {(w[0] + out - 1) / out, n, n, (w[1] + in - 1) / in * in, out}}};
}

Tensors define_pack_winograd(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_winograd(call))[0].shape;
  const WinogradTables& tables = *winograd_tables(call.attrs.get_int("m", 4));
  const int64_t n = tables.points();
  const Tensor half =
      compute("pack_half", {{"k", w.dim(0)}, {"c", w.dim(1)}, {"x", n}, {"s", int64_t{3}}},
              [&](const Indices& at) {
                return row_of(tables.filter, n, at[2], sum_of, [&](int64_t r) {
                  return cast(DType::F32, w({at[0], at[1], int_imm(r), at[3]}));
                });
              });
  return {
      compute("pack_winograd", dims_of(shape, {"ko", "x", "y", "c", "ki"}), [&](const Indices& at) {
        const Expr k = affine(at[0], shape[4]) + at[4];
        const Expr value = row_of(tables.filter, n, at[2], sum_of,
                                  [&](int64_t s) { return half({k, at[3], at[1], int_imm(s)}); });
        const Expr valid =
            both(inside(k, 0, w.dim(0), w.dim(0)), inside(at[3], 0, w.dim(1), w.dim(1)));
        const bool exact = shape[0] * shape[4] == w.dim(0) && shape[3] == w.dim(1);
        return exact ? value : guarded(valid, value, constant(DType::F32, 0));
      })};
}

}  // namespace

const WinogradTables* winograd_tables(int64_t m) {
  static const WinogradTables two = {
      2,
      {1, 0, -1, 0, /**/ 0, 1, 1, 0, /**/ 0, -1, 1, 0, /**/ 0, -1, 0, 1},
      {1, 0, 0, /**/ .5, .5, .5, /**/ .5, -.5, .5, /**/ 0, 0, 1},
      {1, 1, 1, 0, /**/ 0, 1, -1, 1}};
  static const WinogradTables four = {
      4,
      {4, 0,  -5, 0, 1, 0, /**/ 0, -4, -4, 1,  1, 0, /**/ 0, 4, -4, -1, 1, 0,
       0, -2, -1, 2, 1, 0, /**/ 0, 2,  -1, -2, 1, 0, /**/ 0, 4, 0,  -5, 0, 1},
      {1. / 4, 0, 0, /**/ -1. / 6, -1. / 6, -1. / 6, /**/ -1. / 6, 1. / 6, -1. / 6, 1. / 24,
       1. / 12, 1. / 6, /**/ 1. / 24, -1. / 12, 1. / 6, /**/ 0, 0, 1},
      {1, 1, 1, 1, 1, 0, /**/ 0, 1, -1, 2, -2, 0, /**/ 0, 1, 1, 4, 4, 0, /**/ 0, 1, -1, 8, -8, 1}};
  static const WinogradTables six = {
      6,
      {1, 0,   -21. / 4, 0,        21. / 4,  0,        -1, 0, /**/
       0, 1,   1,        -17. / 4, -17. / 4, 1,        1,  0, /**/
       0, -1,  1,        17. / 4,  -17. / 4, -1,       1,  0, /**/
       0, .5,  .25,      -2.5,     -1.25,    2,        1,  0, /**/
       0, -.5, .25,      2.5,      -1.25,    -2,       1,  0, /**/
       0, 2,   4,        -2.5,     -5,       .5,       1,  0, /**/
       0, -2,  4,        2.5,      -5,       -.5,      1,  0, /**/
       0, -1,  0,        21. / 4,  0,        -21. / 4, 0,  1},
      {1,        0,         0,       /**/ -2. / 9,  -2. / 9,  -2. / 9, /**/
       -2. / 9,  2. / 9,    -2. / 9, /**/ 1. / 90,  1. / 45,  2. / 45, /**/
       1. / 90,  -1. / 45,  2. / 45, /**/ 32. / 45, 16. / 45, 8. / 45, /**/
       32. / 45, -16. / 45, 8. / 45, /**/ 0,        0,        1},
      {1, 1, 1,  1,  1,   1,      1,       0, /**/
       0, 1, -1, 2,  -2,  .5,     -.5,     0, /**/
       0, 1, 1,  4,  4,   .25,    .25,     0, /**/
       0, 1, -1, 8,  -8,  .125,   -.125,   0, /**/
       0, 1, 1,  16, 16,  .0625,  .0625,   0, /**/
       0, 1, -1, 32, -32, .03125, -.03125, 1}};
  return m == 2 ? &two : m == 4 ? &four : m == 6 ? &six : nullptr;
}

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
