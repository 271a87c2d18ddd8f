// Reductions over chosen axes, as normalisation and the Reduce operators use them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// Which axes of a shape are reduced.
struct Axes {
  Shape shape;
  std::vector<bool> reduced;

  Axes(Shape shape, const std::vector<int64_t>& axes);
  /// The result's shape; kept axes stay as extent 1.
  Shape output(bool keepdims) const;
  /// Elements per result.
  int64_t count() const;
};

/// out = combine of term(x[at], at) over the reduced axes; with `keepdims` the result broadcasts
/// against x. The term sees x's own type and decides the type of the sum.
Tensor reduce_axes(const std::string& name, const Tensor& x, const Axes& axes, bool keepdims,
                   Combine combine,
                   const std::function<Expr(const Expr& x, const Indices& at)>& term);

/// Mean over the axes and mean squared distance from it, in type `wide`, kept axes of extent 1.
struct Moments {
  Tensor mean, variance;
};
Moments moments(const std::string& name, const Tensor& x, const Axes& axes, DType wide);

/// Position of the first (or last) maximum or minimum along `axis`, i64; NaN counts as extreme.
Tensor arg_extreme(const std::string& name, const Tensor& x, int64_t axis, bool keepdims,
                   bool largest, bool last);

}  // namespace tilewright::tensor
