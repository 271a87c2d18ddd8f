#include "tilewright/tensor/window.h"

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

/// An attribute with one entry per spatial axis (`count` of them), each at least `least`.
Result<std::vector<int64_t>> axis_attr(const OpCall& call, const std::string& key, size_t count,
                                       int64_t fallback, int64_t least) {
  std::vector<int64_t> values = call.attrs.get_ints(key);
  if (values.empty()) values.assign(count, fallback);
  if (values.size() != count)
    return invalid(call, fmt::format("{} needs {} entries, got {}", key, count, values.size()));
  for (const int64_t v : values)
    if (v < least) return invalid(call, fmt::format("{} contains {}", key, v));
  return values;
}

}  // namespace

Expr Window::position(size_t axis, const Expr& at, const Expr& tap) const {
  const Expr start = output[axis] == 1 ? Expr() : affine(at, strides[axis]);
  if (kernel[axis] == 1) return start ? start : int_imm(0);
  const Expr offset = affine(tap, dilations[axis]);
  return start ? start + offset : offset;
}

int64_t Window::reached_end(size_t axis) const {
  const int64_t reach =
      (output[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1;
  return std::max<int64_t>(0, reach - begin[axis] - input[axis]);
}

bool Window::needs_padding() const {
  for (size_t i = 0; i < rank(); ++i)
    if (begin[i] > 0 || reached_end(i) > 0) return true;
  return false;
}

Result<Window> window_of(const OpCall& call, const Shape& spatial, std::vector<int64_t> kernel,
                         bool ceil_mode) {
  const size_t rank = spatial.size();
  if (kernel.size() != rank)
    return invalid(call, fmt::format("the kernel has {} axes, the input has {} spatial axes",
                                     kernel.size(), rank));
  for (const int64_t k : kernel)
    if (k < 1) return invalid(call, fmt::format("kernel {} is empty", to_string(kernel)));
  Window w;
  w.input = spatial;
  w.kernel = std::move(kernel);
  w.strides = TW_TRY(axis_attr(call, "strides", rank, 1, 1));
  w.dilations = TW_TRY(axis_attr(call, "dilations", rank, 1, 1));
  const auto pads = TW_TRY(axis_attr(call, "pads", 2 * rank, 0, 0));
  w.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  w.end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  const std::string auto_pad = call.attrs.get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    return invalid(call, fmt::format("auto_pad is \"{}\"", auto_pad),
                   "NOTSET, SAME_UPPER, SAME_LOWER or VALID is meant");
  if (auto_pad == "VALID") w.begin.assign(rank, 0), w.end.assign(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1, stride = w.strides[i];
    if (same) {
      const int64_t out = ceil_div(w.input[i], stride);
      const int64_t total = std::max<int64_t>(0, (out - 1) * stride + reach - w.input[i]);
      w.begin[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.end[i] = total - w.begin[i];
    }
    const int64_t padded = w.input[i] + w.begin[i] + w.end[i];
    // With ceil_mode a first window may stick out as far as any later one.
    const int64_t missing = ceil_mode ? stride - 1 : 0;
    if (padded + missing < reach)
      return invalid(
          call, fmt::format("the window is larger than the padded input on spatial axis {}", i),
          fmt::format("window {}, input {}, pads {} and {}", reach, w.input[i], w.begin[i],
                      w.end[i]));
    int64_t out = (padded - reach + missing) / stride + 1;
    // A window that would start in the padding behind the input is left out.
    if (ceil_mode && (out - 1) * stride >= w.input[i] + w.begin[i]) --out;
    w.output.push_back(out);
  }
  return w;
}

Tensor pad_tensor(const Tensor& x, const std::string& name, const std::vector<int64_t>& begin,
                  const std::vector<int64_t>& end, const Expr& fill, size_t first_axis) {
  const size_t rank = begin.size();
  Shape shape = x.shape();
  for (size_t i = 0; i < rank; ++i) shape[first_axis + i] += begin[i] + end[i];
  std::vector<std::string> names = {"n", "c"};
  for (const std::string& axis : spatial_names(rank)) names.push_back(axis);
  for (size_t i = first_axis + rank; i < x.rank(); ++i) names.push_back("ci");
  return compute(name, dims_of(shape, names), [&](const Indices& at) {
    Indices source = at;
    Expr condition;
    for (size_t i = 0; i < rank; ++i) {
      Expr& index = source[first_axis + i];
      const int64_t extent = x.dim(first_axis + i);
      if (begin[i] > 0) condition = both(std::move(condition), index >= begin[i]);
      if (end[i] > 0) condition = both(std::move(condition), index < begin[i] + extent);
      index = affine(index, 1, -begin[i]);
    }
    return guarded(std::move(condition), x(source), fill);
  });
}

Tensor pad_for(const Window& window, const Tensor& x, const std::string& name, const Expr& fill,
               size_t first_axis) {
  if (!window.needs_padding()) return x;
  std::vector<int64_t> end;
  for (size_t i = 0; i < window.rank(); ++i) end.push_back(window.reached_end(i));
  return pad_tensor(x, name, window.begin, end, fill, first_axis);
}

std::vector<std::string> spatial_names(size_t rank) {
  static const std::vector<std::string> kNames = {"d", "h", "w"};
  if (rank > 3) return {};
  return {kNames.end() - static_cast<std::ptrdiff_t>(rank), kNames.end()};
}

std::vector<std::string> tap_names(size_t rank) {
  static const std::vector<std::string> kNames = {"t", "r", "s"};
  if (rank > 3) return {};
  return {kNames.end() - static_cast<std::ptrdiff_t>(rank), kNames.end()};
}

}  // namespace tilewright::tensor
