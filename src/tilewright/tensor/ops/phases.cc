// Transposed convolutions of stride s in sub-pixel form: output s * q + p of phase p is output q of
// an ordinary convolution of stride 1 with every s-th tap of the kernel, so the phases are
// convolutions of their own over the same input.
// source: Shi et al., Is the deconvolution layer the same as a convolutional layer? (2016)
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"
#include "tilewright/tensor/channel_blocks.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

/// The phase as one number; the first axis moves slowest.
Expr flat_phase(const Indices& phase, const Ints& strides) {
  Expr flat = int_imm(0);
  for (size_t i = 0; i < strides.size(); ++i)
    if (strides[i] > 1) flat = affine(flat, strides[i]) + phase[i];
  return flat;
}

// --- PhaseConvBlocked.

struct Phases {
  Ints strides, begin, output, taps;  ///< `output`: positions of each phase
  int64_t phases = 1, blocks = 1;     ///< blocks of output channels
};

Result<Phases> phases_of(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  if (x.size() < 4 || x.size() > 6)
    return invalid(call, fmt::format("the input {} is not blocked", to_string(x)));
  TW_TRY_STATUS(require_rank(call, 1, x.size() + 1));
  const size_t rank = x.size() - 3;
  Phases p;
  p.strides = TW_TRY(axis_ints(call, "strides", rank, 1));
  p.begin = TW_TRY(axis_ints(call, "begin", rank, 0));
  p.output = TW_TRY(axis_ints(call, "output", rank, 1));
  p.taps.assign(w.begin() + 2, w.end() - 2);
  p.phases = product(p.strides);
  if (x[1] != w[1] || x.back() != w[w.size() - 2] || w[0] % p.phases != 0)
    return invalid(call, fmt::format("input {}, packed weight {} and strides {} do not fit",
                                     to_string(x), to_string(w), to_string(p.strides)));
  p.blocks = w[0] / p.phases;
  TW_TRY_STATUS(check_channels(call));
  TW_TRY_STATUS(require_shape(call, 2, {p.blocks * w.back()}));
  return p;
}

/// [n, blocks, q, p per axis, channel in block]: in memory the blocked result of the whole.
Inferred infer_phase_conv(const OpCall& call) {
  const Phases p = TW_TRY(phases_of(call));
  Shape shape = {call.inputs[0].shape[0], p.blocks};
  for (size_t i = 0; i < p.strides.size(); ++i)
    shape.insert(shape.end(), {p.output[i], p.strides[i]});
  shape.push_back(call.inputs[1].shape.back());
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

/// How far position q of phase p lies behind the last input it reads.
Expr phase_offset(const Phases& p, size_t axis, const Expr& phase) {
  const int64_t stride = p.strides[axis], begin = p.begin[axis];
  if (begin % stride == 0) return int_imm(begin / stride);
  return affine(phase, 1, begin) / stride;
}

Tensors define_phase_conv(const OpCall& call, const Tensors& in) {
  const Phases p = *phases_of(call);
  const TensorType type = (*infer_phase_conv(call))[0];
  const DType acc = accumulator(type.dtype);
  const Tensor& w = in[1];
  const size_t rank = p.strides.size();
  Ints before(rank), after(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t first = p.begin[i] / p.strides[i] - (p.taps[i] - 1);
    const int64_t last = p.output[i] - 1 + (p.strides[i] - 1 + p.begin[i]) / p.strides[i];
    before[i] = std::max<int64_t>(0, -first);
    after[i] = std::max<int64_t>(0, last - in[0].dim(i + 2) + 1);
  }
  const bool reaches = *std::max_element(before.begin(), before.end()) > 0 ||
                       *std::max_element(after.begin(), after.end()) > 0;
  const Tensor x =
      reaches ? pad_tensor(in[0], "conv_pad", before, after, const_of(type.dtype, 0)) : in[0];

  // The sum runs phase by phase; the result is put in order as it is written.
  const std::vector<std::string> spatial = spatial_names(rank);
  std::vector<Dim> space = {{"n", type.shape[0]}};
  for (size_t i = 0; i < rank; ++i) space.push_back({"p" + spatial[i], p.strides[i]});
  space.push_back({"ko", p.blocks});
  for (size_t i = 0; i < rank; ++i) space.push_back({"q" + spatial[i], p.output[i]});
  space.push_back({"ki", type.shape.back()});
  const ChannelSum channels = channel_sum(call);
  std::vector<Dim> over = {{"co", channels.blocks}};
  for (const Dim& tap : dims_of(p.taps, tap_names(rank))) over.push_back(tap);
  over.push_back({"ci", channels.per_block});
  const Tensor sum = reduce(
      "conv", space, over, Combine::Add,
      [&](const Indices& at, const Indices& r) {
        const Indices phase(at.begin() + 1, at.begin() + 1 + static_cast<std::ptrdiff_t>(rank));
        const Expr ko = affine(flat_phase(phase, p.strides), p.blocks) + at[1 + rank];
        Indices source = {at[0], r[0]}, weight = {ko};
        for (size_t i = 0; i < rank; ++i) {
          const Expr reach = phase_offset(p, i, phase[i]) + at[2 + rank + i];
          source.push_back(affine(reach, 1, before[i] - (p.taps[i] - 1)) + r[1 + i]);
        }
        source.push_back(r.back());
        weight.insert(weight.end(), r.begin(), r.end());
        weight.push_back(at.back());
        return cast(acc, x(source)) * cast(acc, w(weight));
      },
      {}, channels.counts);

  std::vector<std::string> names = {"n", "ko"};
  for (const std::string& axis : spatial) names.insert(names.end(), {"q" + axis, "p" + axis});
  names.emplace_back("ki");
  return {compute("conv_bias", dims_of(type.shape, names), [&](const Indices& at) {
    Indices source = {at[0]};
    for (size_t i = 0; i < rank; ++i) source.push_back(at[3 + 2 * i]);
    source.push_back(at[1]);
    for (size_t i = 0; i < rank; ++i) source.push_back(at[2 + 2 * i]);
    source.push_back(at.back());
    Expr value = sum(source);
    if (call.input(2))
      value = value + cast(acc, in[2]({affine(at[1], type.shape.back()) + at.back()}));
    return cast(type.dtype, value);
  })};
}

// --- PhasesToSpace: y[n, k, h..] = x[n, phase(h + begin) * channels + k, (h + begin) / stride..].

Inferred infer_phases_to_space(const OpCall& call) {
  const Shape& x = call.inputs[0].shape;
  if (x.size() < 3 || x.size() > 5)
    return invalid(call,
                   fmt::format("the input {} does not have 1 to 3 spatial axes", to_string(x)));
  const size_t rank = x.size() - 2;
  const Ints strides = TW_TRY(axis_ints(call, "strides", rank, 1));
  const Ints begin = TW_TRY(axis_ints(call, "begin", rank, 0));
  const Ints output = TW_TRY(axis_ints(call, "output", rank, 1));
  bool fits = x[1] % product(strides) == 0;
  for (size_t i = 0; i < rank; ++i) fits &= begin[i] + output[i] <= x[i + 2] * strides[i];
  if (!fits)
    return invalid(call, fmt::format("the input {} does not hold the phases of an output {}",
                                     to_string(x), to_string(output)));
  Shape shape = {x[0], x[1] / product(strides)};
  shape.insert(shape.end(), output.begin(), output.end());
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

Tensors define_phases_to_space(const OpCall& call, const Tensors& in) {
  const Shape shape = (*infer_phases_to_space(call))[0].shape;
  const Ints strides = call.attrs.get_ints("strides"), begin = call.attrs.get_ints("begin");
  std::vector<std::string> names = {"n", "k"};
  for (const std::string& axis : spatial_names(strides.size())) names.push_back(axis);
  return {compute("phases_to_space", dims_of(shape, names), [&](const Indices& at) {
    Indices phase, source = {at[0], at[1]};
    for (size_t i = 0; i < strides.size(); ++i) {
      const Expr from = affine(at[i + 2], 1, begin[i]);
      phase.push_back(strides[i] > 1 ? from % strides[i] : int_imm(0));
      source.push_back(strides[i] > 1 ? from / strides[i] : from);
    }
    source[1] = affine(flat_phase(phase, strides), shape[1]) + at[1];
    return in[0](source);
  })};
}

}  // namespace

void add_phase_ops(std::vector<OpDef>& table) {
  table.push_back({"tilewright",
                   "PhaseConvBlocked",
                   2,
                   3,
                   Fusion::Complex,
                   {},
                   infer_phase_conv,
                   define_phase_conv,
                   ""});
  table.push_back({"tilewright",
                   "PhasesToSpace",
                   1,
                   1,
                   Fusion::Injective,
                   {},
                   infer_phases_to_space,
                   define_phases_to_space,
                   ""});
}

}  // namespace tilewright::tensor
