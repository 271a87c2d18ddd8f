// Sliding windows: what convolutions and pools have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// A window over the spatial axes of an [n, c, spatial...] tensor, all sizes known.
struct Window {
  std::vector<int64_t> input, kernel, strides, dilations, begin, end, output;  ///< per spatial axis

  size_t rank() const { return kernel.size(); }
  /// Position in padded coordinates of tap `tap` of output `at` on spatial axis `axis`.
  Expr position(size_t axis, const Expr& at, const Expr& tap) const;
  /// Padding after the input that windows really reach (end of the last window).
  int64_t reached_end(size_t axis) const;
  bool needs_padding() const;
};

/// Reads strides, dilations, pads and auto_pad from the call. errors: Invalid on wrong counts,
/// values below 1, negative pads, or a window larger than the padded input.
Result<Window> window_of(const OpCall& call, const Shape& spatial, std::vector<int64_t> kernel,
                         bool ceil_mode = false);

/// A transposed convolution: output h sums tap t of input i where i * stride + t * dilation equals
/// h + begin.
struct TransposedWindow {
  std::vector<int64_t> kernel, strides, dilations, begin, output;  ///< per spatial axis
  int64_t groups = 1;
};

/// Checks shapes and attributes of a ConvTranspose. errors: Invalid.
Result<TransposedWindow> transposed_window(const OpCall& call);

/// How one axis of a transposed window gathers: output h takes kernel position `tap(h, i)` of input
/// `source(h, i)` for i below `count`, where `valid` holds.
struct AxisTaps {
  int64_t count = 1, first = 0, last = 0;  ///< sources run from first to last
  std::function<Expr(const Expr& h, const Expr& i)> tap, source;
  std::function<Expr(const Expr& h, const Expr& i)> valid;  ///< gives an empty handle for always
};
AxisTaps axis_taps(const TransposedWindow& window, size_t axis);

/// The input with `fill` around its spatial axes (from `first_axis` on) so that each window reads
/// inside; the input itself if no window reaches beyond it.
Tensor pad_for(const Window& window, const Tensor& x, const std::string& name, const Expr& fill,
               size_t first_axis = 2);
/// `x` extended by `begin` and `end` elements of value `fill` on the axes from `first_axis` on.
Tensor pad_tensor(const Tensor& x, const std::string& name, const std::vector<int64_t>& begin,
                  const std::vector<int64_t>& end, const Expr& fill, size_t first_axis = 2);

/// Names of the spatial axes of a rank: w; h, w; d, h, w; and of the window's axes: s; r, s; t, r,
/// s.
std::vector<std::string> spatial_names(size_t rank);
std::vector<std::string> tap_names(size_t rank);

/// sum over c, taps of acc(x[n, group c, position]) * acc(w[k, c, taps]), where x is already padded
/// (`pad_for`). shape: x [n, c, spatial...], w [k, c/groups, taps...] -> [n, k, output...], type
/// `acc`. The reduction over c is left out for one channel per group.
Tensor conv_sum(const std::string& name, const Tensor& x, const Tensor& w, const Window& window,
                int64_t groups, DType acc);

/// Checks shapes and groups of a convolution x, w, optional bias (input 2) and gives its window.
Result<Window> conv_window(const OpCall& call, const Shape& x, const Shape& w);

/// The sum of acc(a) * acc(b) over the inner axis, by NumPy's rules for stacks and vectors, in type
/// `acc`. requires: the shapes fit.
Tensor matmul_sum(const std::string& name, const Tensor& a, const Tensor& b, DType acc);

/// The shape of a matrix product of inputs 0 and 1 by NumPy's rules. errors: Invalid.
Result<Shape> matmul_shape(const OpCall& call);

// The tables of ops/nn.cc, one per file.
void add_conv_ops(std::vector<OpDef>& table);
void add_phase_ops(std::vector<OpDef>& table);
void add_window_move_ops(std::vector<OpDef>& table);
void add_pool_ops(std::vector<OpDef>& table);
void add_col2im_op(std::vector<OpDef>& table);
void add_matmul_ops(std::vector<OpDef>& table);
void add_integer_ops(std::vector<OpDef>& table);

}  // namespace tilewright::tensor
