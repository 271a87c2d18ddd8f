// Products of 8-bit integers with zero points, summed in i32: ConvInteger, MatMulInteger; and
// without them.
#include "tilewright/base/check.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

Status check_operands(const OpCall& call) {
  for (size_t i = 0; i < 2; ++i) {
    const DType dtype = call.inputs[i].dtype;
    if (dtype != DType::I8 && dtype != DType::U8)
      return invalid(call, fmt::format("input {} must be i8 or u8", i),
                     fmt::format("it is {}", name(dtype)));
    if (const InputInfo* zero = call.input(i + 2); zero && zero->dtype != dtype)
      return invalid(call, fmt::format("the zero point of input {} has another type", i),
                     fmt::format("{} and {}", name(zero->dtype), name(dtype)));
  }
  return {};
}

bool is_zero(const OpCall& call, size_t i) {
  const InputInfo* in = call.input(i);
  if (in == nullptr) return true;
  if (!in->value) return false;
  for (int64_t k = 0; k < in->value->size(); ++k)
    if (in->value->get_int(k) != 0) return false;
  return true;
}

/// Operand `i` less its zero point, in i32; the operand itself if that is known to be zero.
/// `axis` is the one a zero point of rank 1 runs along.
Tensor shifted(const OpCall& call, const Tensors& in, size_t i, size_t axis) {
  const Tensor& x = in[i];
  if (is_zero(call, i + 2)) return x;
  const Tensor& zero = in[i + 2];
  return compute(i == 0 ? "shifted_x" : "shifted_w", dims_of(x.shape()), [&](const Indices& at) {
    const bool along_axis = zero.rank() == 1 && zero.dim(0) != 1;
    const Expr point = along_axis ? zero({at[axis]}) : element(call, in, i + 2, at);
    return cast(DType::I32, x(at)) - cast(DType::I32, point);
  });
}

Inferred infer_conv_integer(const OpCall& call) {
  TW_TRY_STATUS(check_operands(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const Window window = TW_TRY(conv_window(call, x, w));
  if (const InputInfo* zero = call.input(2); zero && element_count(zero->shape) != 1)
    return invalid(call, fmt::format("the input's zero point must be a scalar"),
                   fmt::format("its shape is {}", to_string(zero->shape)));
  if (const InputInfo* zero = call.input(3);
      zero && element_count(zero->shape) != 1 && zero->shape != Shape{w[0]})
    return invalid(
        call, fmt::format("the weight's zero point must be a scalar or have {} elements", w[0]),
        fmt::format("its shape is {}", to_string(zero->shape)));
  Shape out = {x[0], w[0]};
  out.insert(out.end(), window.output.begin(), window.output.end());
  return std::vector<TensorType>{{DType::I32, out}};
}

Tensors define_conv_integer(const OpCall& call, const Tensors& in) {
  const Window window = *conv_window(call, in[0].shape(), in[1].shape());
  const Tensor x = shifted(call, in, 0, 0), w = shifted(call, in, 1, 0);
  // Padding stands for the zero point, which is 0 once the operand is shifted.
  const Tensor padded = pad_for(window, x, "conv_pad", const_of(x.dtype(), 0));
  return {conv_sum("conv", padded, w, window, call.attrs.get_int("group", 1), DType::I32)};
}

/// x, w, what padding holds (nothing: 0): the bytes themselves are multiplied.
Tensors define_conv_bytes(const OpCall& call, const Tensors& in) {
  const Window window = *conv_window(call, in[0].shape(), in[1].shape());
  const Expr fill = call.input(2) == nullptr
                        ? const_of(in[0].dtype(), 0)
                        : element(call, in, 2, Indices(in[2].rank(), int_imm(0)));
  return {conv_sum("conv", pad_for(window, in[0], "conv_pad", fill), in[1], window,
                   call.attrs.get_int("group", 1), DType::I32)};
}

Inferred infer_matmul_integer(const OpCall& call) {
  TW_TRY_STATUS(check_operands(call));
  const Shape out = TW_TRY(matmul_shape(call));
  for (size_t i = 0; i < 2; ++i) {
    const Shape& operand = call.inputs[i].shape;
    const InputInfo* zero = call.input(i + 2);
    if (zero == nullptr || element_count(zero->shape) == 1) continue;
    const int64_t along =
        i == 1 || operand.size() == 1 ? operand.back() : operand[operand.size() - 2];
    if (zero->shape == Shape{along}) continue;
    const auto shape = broadcast(zero->shape, operand);
    if (zero->shape.size() < 2 || !shape || *shape != operand)
      return invalid(call, fmt::format("the zero point of input {} does not fit it", i),
                     fmt::format("shapes {} and {}", to_string(zero->shape), to_string(operand)));
  }
  return std::vector<TensorType>{{DType::I32, out}};
}

Tensors define_matmul_integer(const OpCall& call, const Tensors& in) {
  const size_t rows = in[0].rank() < 2 ? 0 : in[0].rank() - 2;
  const Tensor a = shifted(call, in, 0, rows), b = shifted(call, in, 1, in[1].rank() - 1);
  return {matmul_sum("matmul", a, b, DType::I32)};
}

}  // namespace

void add_integer_ops(std::vector<OpDef>& table) {
  table.push_back(
      {"", "ConvInteger", 2, 4, Fusion::Complex, {}, infer_conv_integer, define_conv_integer, ""});
  table.push_back({"tilewright",
                   "ConvBytes",
                   2,
                   3,
                   Fusion::Complex,
                   {},
                   infer_conv_integer,
                   define_conv_bytes,
                   ""});
  table.push_back({"",
                   "MatMulInteger",
                   2,
                   4,
                   Fusion::Complex,
                   {},
                   infer_matmul_integer,
                   define_matmul_integer,
                   ""});
}

}  // namespace tilewright::tensor
