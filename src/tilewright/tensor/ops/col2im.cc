// Col2Im puts the columns of windows back into an image, where windows that overlap add up. With
// windows of 2 at stride 1 on an image of 3, the columns [a b; c d] (a row for each tap) become
//
//   [a, b + c, d]
//
// as a transposed convolution sums them, without weights.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Ints = std::vector<int64_t>;

struct Columns {
  TransposedWindow window;  ///< from columns to the image
  Ints places;              ///< windows per spatial axis
  int64_t channels = 0;
};

Result<Columns> columns_of(const OpCall& call) {
  Columns out;
  TransposedWindow& t = out.window;
  t.output = int_values(call, 1), t.kernel = int_values(call, 2);
  const size_t rank = t.output.size();
  if (rank > 3)
    return unsupported(call, fmt::format("an image of {} axes", rank), "at most 3 are supported");
  if (rank == 0 || t.kernel.size() != rank)
    return invalid(call,
                   fmt::format("image_shape has {} axes, block_shape {}", rank, t.kernel.size()));
  const auto ints = [&](const char* key, size_t count, int64_t least) -> Result<Ints> {
    if (!call.attrs.has(key)) return Ints(count, least);  // which is what ONNX says
    return axis_ints(call, key, count, least);
  };
  t.strides = TW_TRY(ints("strides", rank, 1));
  t.dilations = TW_TRY(ints("dilations", rank, 1));
  const Ints pads = TW_TRY(ints("pads", 2 * rank, 0));
  t.begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  for (size_t i = 0; i < rank; ++i) {
    const int64_t padded = t.output[i] + pads[i] + pads[i + rank];
    if (t.output[i] < 1 || t.kernel[i] < 1 || padded <= (t.kernel[i] - 1) * t.dilations[i])
      return invalid(call, fmt::format("blocks {} do not fit an image {}", to_string(t.kernel),
                                       to_string(t.output)));
    out.places.push_back((padded - (t.kernel[i] - 1) * t.dilations[i] - 1) / t.strides[i] + 1);
  }
  const Shape& x = call.inputs[0].shape;
  if (x.size() != 3 || x[1] % product(t.kernel) != 0 || x[2] != product(out.places))
    return invalid(call, fmt::format("the input {} does not hold columns of {} taps at {} places",
                                     to_string(x), product(t.kernel), product(out.places)));
  out.channels = x[1] / product(t.kernel);
  return out;
}

Result<std::vector<TensorType>> infer_col2im(const OpCall& call) {
  const Columns columns = TW_TRY(columns_of(call));
  Shape shape = {call.inputs[0].shape[0], columns.channels};
  shape.insert(shape.end(), columns.window.output.begin(), columns.window.output.end());
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

std::vector<Tensor> define_col2im(const OpCall& call, const std::vector<Tensor>& in) {
  const Columns columns = *columns_of(call);
  const TransposedWindow& t = columns.window;
  const Shape shape = (*infer_col2im(call))[0].shape;
  const DType dtype = in[0].dtype(), acc = accumulator(dtype);
  std::vector<AxisTaps> taps;
  Shape over;
  for (size_t i = 0; i < t.kernel.size(); ++i) {
    taps.push_back(axis_taps(t, i));
    over.push_back(taps[i].count);
  }
  const size_t rank = t.kernel.size();
  std::vector<std::string> names = {"n", "c"};
  for (const std::string& axis : spatial_names(rank)) names.push_back(axis);
  const Tensor sum =
      reduce("col2im", dims_of(shape, names), dims_of(over, tap_names(rank)), Combine::Add,
             [&](const Indices& at, const Indices& r) {
               Indices tap, place;
               Expr valid;
               for (size_t i = 0; i < rank; ++i) {
                 const Expr& h = at[i + 2];
                 tap.push_back(taps[i].tap(h, r[i]));
                 place.push_back(taps[i].source(h, r[i]));
                 valid = both(both(std::move(valid), taps[i].valid(h, r[i])),
                              inside(place[i], taps[i].first, taps[i].last, columns.places[i]));
               }
               const Expr channel = affine(at[1], product(t.kernel)) + flatten_index(tap, t.kernel);
               const Expr value = in[0]({at[0], channel, flatten_index(place, columns.places)});
               return guarded(valid, cast(acc, value), const_of(acc, 0));
             });
  if (acc == dtype) return {sum};
  return {compute("col2im_cast", dims_of(shape),
                  [&](const Indices& at) { return cast(dtype, sum(at)); })};
}

}  // namespace

void add_col2im_op(std::vector<OpDef>& table) {
  table.push_back({"", "Col2Im", 3, 3, Fusion::Complex, {1, 2}, infer_col2im, define_col2im, ""});
}

}  // namespace tilewright::tensor
