// Dot-product instructions add groups of products: sum over c of x[c] w[c] in groups of 4 is (x[0]
// w[0] + .. + x[3] w[3]) + (x[4] w[4] + ..) + ... The elements of a group lie side by side:
//
//   w [k, c, r, s] of a Conv, blocks of b, groups of 4  =>  [k / b, c / b, r, s, b / 4, b, 4]
//
// A zero point of x takes zero * sum w from each result, which is known and counts as a bias.
#include "tilewright/graph/passes/dot_form.h"

#include <cstring>
#include <set>

#include "tilewright/graph/ir/known.h"

namespace tilewright::graph {
namespace {

const Array* known(const Graph& graph, const Node& node, size_t input) {
  if (input >= node.inputs.size() || node.inputs[input] < 0) return nullptr;
  const Value& value = graph.values[static_cast<size_t>(node.inputs[input])];
  return value.constant ? &*value.constant : nullptr;
}

bool present(const Node& node, size_t input) {
  return input < node.inputs.size() && node.inputs[input] >= 0;
}

/// The one number a zero point has; 0 if there is none, nothing if it is unknown or several.
std::optional<int64_t> zero_point(const Graph& graph, const Node& node, size_t input) {
  if (!present(node, input)) return 0;
  const Array* zero = known(graph, node, input);
  if (zero == nullptr || zero->size() == 0) return std::nullopt;
  for (int64_t i = 1; i < zero->size(); ++i)
    if (zero->get_int(i) != zero->get_int(0)) return std::nullopt;
  return zero->get_int(0);
}

/// -zero * (sum of the weights of each filter), in the wrapping arithmetic of i32. `axis` is the
/// filters'.
Array correction(const Array& w, size_t axis, int64_t zero) {
  const Shape& shape = w.shape();
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  Array out(DType::I32, {shape[axis]});
  const std::span<int32_t> sums = out.as<int32_t>();
  const std::span<const int8_t> values = w.as<int8_t>();
  for (int64_t i = 0; i < w.size(); ++i) sums[i / inner % shape[axis]] += values[i];
  for (int32_t& sum : sums)
    sum = static_cast<int32_t>(static_cast<uint32_t>(sum) * static_cast<uint32_t>(-zero));
  return out;
}

}  // namespace

std::optional<DotForm> dot_form(const Graph& graph, const Node& node, const PassContext& context) {
  static const std::set<std::string> kIntegers = {"ConvInteger", "MatMulInteger"};
  static const std::set<std::string> kFloats = {"Conv", "MatMul", "Gemm"};
  const bool integer = kIntegers.contains(node.op);
  const Array* w = known(graph, node, 1);
  if (!context.dot_depth || !node.domain.empty() || w == nullptr ||
      (!integer && !kFloats.contains(node.op)))
    return std::nullopt;
  const DType x_type = graph.values[static_cast<size_t>(node.inputs[0])].type.dtype;
  DotForm form;
  form.depth = context.dot_depth(x_type, w->dtype());
  if (form.depth == 0 || w->shape().size() < 2) return std::nullopt;
  if (!integer) {
    if (present(node, 2) && known(graph, node, 2) == nullptr) return std::nullopt;
    if (present(node, 2)) form.offset = *known(graph, node, 2);
    return form;
  }
  const auto x_zero = zero_point(graph, node, 2), w_zero = zero_point(graph, node, 3);
  if (!x_zero || w_zero != int64_t{0} || w->dtype() != DType::I8) return std::nullopt;
  form.zero = *x_zero;
  if (form.zero != 0) form.offset = correction(*w, node.op == "ConvInteger" ? 0 : 1, form.zero);
  return form;
}

bool is_depthwise(const Shape& weight, int64_t groups) {
  return groups > 1 && weight[0] == groups && weight[1] == 1;
}

int64_t merged_groups(const Shape& weight, int64_t groups, int64_t block) {
  // Of the products of a group of zeros and others, one in four counts: as many as in f32.
  constexpr int64_t kMost = 4;
  if (groups == 1) return 1;
  for (int64_t joined = 1; joined <= std::min(kMost, groups); ++joined)
    if (groups % joined == 0 && weight[1] * joined % block == 0 &&
        weight[0] / groups * joined % block == 0)
      return groups / joined;
  return 0;
}

Array merge_groups(const Array& weight, int64_t groups, int64_t merged) {
  const Shape& from = weight.shape();
  const int64_t joined = groups / merged, filters = from[0] / groups, channels = from[1];
  Shape to = from;
  to[1] *= joined;
  Array out(weight.dtype(), to);
  const int64_t taps = channels == 0 ? 0 : weight.size() / (from[0] * channels);
  for (int64_t k = 0; k < from[0]; ++k)
    for (int64_t i = 0; i < channels * taps; ++i) {
      const int64_t place = k / filters % joined;
      copy_element(out, (k * joined + place) * channels * taps + i, weight,
                   k * channels * taps + i);
    }
  return out;
}

std::optional<Array> pack_dot_known(const tensor::OpCall& call, const tensor::TensorType& type) {
  const bool conv = call.op == "PackConvDotWeight";
  if (call.domain != "tilewright" || call.inputs.empty() || !call.inputs[0].value ||
      (!conv && call.op != "PackGemmDotWeight"))
    return std::nullopt;
  const Array& source = *call.inputs[0].value;
  const Shape &from = source.shape(), &to = type.shape;
  const bool transposed = conv || call.attrs.get_int("transB", 0) != 0;
  // Both as [filter blocks, channel blocks, taps, groups, filters, group].
  const int64_t taps = conv ? to[2] * to[3] : 1;
  const int64_t filters = from[transposed ? 0 : 1], channels = from[transposed ? 1 : 0];
  const int64_t groups = conv ? to[4] : to[1], blocks = conv ? to[1] : 1;
  const int64_t width = to[to.size() - 2], depth = to.back();
  const int64_t k_step = transposed ? channels * taps : 1, c_step = transposed ? taps : filters;
  const size_t bytes = static_cast<size_t>(bit_width(type.dtype)) / 8;
  Array result(type.dtype, type.shape);
  std::memset(result.data(), 0, static_cast<size_t>(result.bytes()));
  const char* in = static_cast<const char*>(source.data());
  char* out = static_cast<char*>(result.data());
  for (int64_t ko = 0; ko < to[0]; ++ko)
    for (int64_t co = 0; co < blocks; ++co)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t ci = 0; ci < groups; ++ci)
          for (int64_t ki = 0; ki < width; ++ki)
            for (int64_t q = 0; q < depth; ++q, out += bytes) {
              const int64_t k = ko * width + ki, c = (co * groups + ci) * depth + q;
              if (k >= filters || c >= channels) continue;
              const int64_t at = k * k_step + c * c_step + tap;
              std::memcpy(out, in + static_cast<size_t>(at) * bytes, bytes);
            }
  return result;
}

}  // namespace tilewright::graph
