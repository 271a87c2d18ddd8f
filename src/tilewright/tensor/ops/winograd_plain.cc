// Convolutions of stride 1 with fewer multiplications, on plain NCHW values: transforms and one
// batch of matrix products, a shape that GPUs like.
#include <fmt/format.h>

#include "tilewright/base/integers.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"
#include "tilewright/tensor/winograd.h"
#include "tilewright/tensor/winograd_rows.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

/// x [n, c, h, w], u [1, points, points, c, k] (PackWinogradWeight with one block of all filters).
struct Form {
  const WinogradTables* side = nullptr;  ///< of rows and of columns
  Window window;
  int64_t rows = 0, columns = 0;  ///< tiles of an image
};

Result<Form> form_of(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Float));
  TW_TRY_STATUS(require_rank(call, 0, 4));
  TW_TRY_STATUS(require_rank(call, 1, 5));
  const Shape &x = call.inputs[0].shape, &u = call.inputs[1].shape;
  const int64_t m = call.attrs.get_int("m", 4);
  Form form;
  form.side = winograd_tables(m, u[1] - m + 1);
  if (form.side == nullptr || u[1] != u[2] || form.side->taps < 2)
    return invalid(call, fmt::format("m is {}, the transformed weight {}", m, to_string(u)),
                   "square windows of 2 taps or more with 4, 5, 6, 8 or 10 points are known");
  if (call.inputs[0].dtype != DType::F32 || u[0] != 1 || u[3] != x[1])
    return invalid(call, fmt::format("input {} and transformed weight {} do not fit m = {}",
                                     to_string(x), to_string(u), m));
  TW_TRY_STATUS(require_shape(call, 2, {u[4]}));
  form.window = TW_TRY(window_of(call, {x[2], x[3]}, {form.side->taps, form.side->taps}));
  if (form.window.strides != std::vector<int64_t>{1, 1} ||
      form.window.dilations != std::vector<int64_t>{1, 1})
    return invalid(call, "only stride 1 without dilation has this form");
  form.rows = ceil_div(form.window.output[0], m);
  form.columns = ceil_div(form.window.output[1], m);
  return form;
}

Inferred infer_plain_winograd(const OpCall& call) {
  const Form form = TW_TRY(form_of(call));
  return std::vector<TensorType>{{DType::F32,
                                  {call.inputs[0].shape[0], call.inputs[1].shape[4],
                                   form.window.output[0], form.window.output[1]}}};
}

/// B^T d B of every tile p of every image, by point.
Tensor transformed(const Tensor& x, const Form& form) {
  const WinogradTables& side = *form.side;
  const int64_t points = side.points(), tiles = form.rows * form.columns;
  const Dim c{"c", x.dim(1)}, p{"p", x.dim(0) * tiles};
  const Tensor pixels =
      compute("wino_pixels", {c, p, {"b", points}, {"a", points}}, [&](const Indices& at) {
        const Expr tile = at[1] % tiles;
        const Expr h = affine(tile / form.columns, side.m, -form.window.begin[0]) + at[3];
        const Expr w = affine(tile % form.columns, side.m, -form.window.begin[1]) + at[2];
        const Expr valid =
            both(inside(h, -1, x.dim(2), x.dim(2)), inside(w, -1, x.dim(3), x.dim(3)));
        return guarded(valid, x({at[1] / tiles, at[0], h, w}), constant(DType::F32, 0));
      });
  const Tensor half =
      compute("wino_rows", {c, p, {"x", points}, {"b", points}}, [&](const Indices& at) {
        return row_of(side.input, points, at[2], input_row,
                      [&](int64_t a) { return pixels({at[0], at[1], at[3], int_imm(a)}); });
      });
  return compute("wino_in", {{"x", points}, {"y", points}, c, p}, [&](const Indices& at) {
    return row_of(side.input, points, at[1], input_row,
                  [&](int64_t b) { return half({at[2], at[3], at[0], int_imm(b)}); });
  });
}

/// The tensors are called wino_pixels, wino_rows, wino_in, wino_sum, wino_half, wino: the schedule
/// rule knows them by these names (rules/gpu/winograd.h).
Tensors define_plain_winograd(const OpCall& call, const Tensors& in) {
  const Form form = *form_of(call);
  const Shape shape = (*infer_plain_winograd(call))[0].shape;
  const WinogradTables& side = *form.side;
  const int64_t m = side.m, points = side.points(), tiles = form.rows * form.columns;
  const Tensor& u = in[1];
  const Tensor v = transformed(in[0], form);
  const Dim k{"k", shape[1]}, p{"p", shape[0] * tiles};
  const Tensor sum =
      reduce("wino_sum", {{"x", points}, {"y", points}, k, p}, {{"c", v.dim(2)}}, Combine::Add,
             [&](const Indices& at, const Indices& r) {
               return u({int_imm(0), at[0], at[1], r[0], at[2]}) * v({at[0], at[1], r[0], at[3]});
             });
  const Tensor half = compute("wino_half", {k, p, {"i", m}, {"y", points}}, [&](const Indices& at) {
    return row_of(side.output, m, at[2], output_row,
                  [&](int64_t a) { return sum({int_imm(a), at[3], at[0], at[1]}); });
  });
  return {compute("wino", dims_of(shape, {"n", "k", "h", "w"}), [&](const Indices& at) {
    const Expr tile = affine(at[0], tiles) + affine(at[2] / m, form.columns) + at[3] / m;
    const Expr value = row_of(side.output, m, at[3] % m, output_row, [&](int64_t b) {
      return half({at[1], tile, at[2] % m, int_imm(b)});
    });
    return call.input(2) ? value + in[2]({at[1]}) : value;
  })};
}

}  // namespace

void add_plain_winograd_ops(std::vector<OpDef>& table) {
  table.push_back({"tilewright",
                   "WinogradConv",
                   2,
                   3,
                   Fusion::Complex,
                   {},
                   infer_plain_winograd,
                   define_plain_winograd,
                   ""});
}

}  // namespace tilewright::tensor
