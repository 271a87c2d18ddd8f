#include "tilewright/tensor/reduce_util.h"

#include <limits>

#include "tilewright/base/check.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {

Axes::Axes(Shape of, const std::vector<int64_t>& axes)
    : shape(std::move(of)), reduced(shape.size(), false) {
  for (const int64_t axis : axes) reduced.at(static_cast<size_t>(axis)) = true;
}

Shape Axes::output(bool keepdims) const {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!reduced[i]) out.push_back(shape[i]);
    if (reduced[i] && keepdims) out.push_back(1);
  }
  return out;
}

int64_t Axes::count() const {
  int64_t n = 1;
  for (size_t i = 0; i < shape.size(); ++i) n *= reduced[i] ? shape[i] : 1;
  return n;
}

Tensor reduce_axes(const std::string& name, const Tensor& x, const Axes& axes, bool keepdims,
                   Combine combine,
                   const std::function<Expr(const Expr& x, const Indices& at)>& term) {
  std::vector<Dim> space, over;
  for (size_t i = 0; i < axes.shape.size(); ++i) {
    const std::string axis = "i" + std::to_string(i);
    if (!axes.reduced[i]) space.push_back({axis, axes.shape[i]});
    if (axes.reduced[i]) over.push_back({"r" + std::to_string(i), axes.shape[i]});
    if (axes.reduced[i] && keepdims) space.push_back({axis, 1});
  }
  return reduce(name, space, over, combine, [&](const Indices& at, const Indices& r) {
    Indices source;
    size_t next_space = 0, next_over = 0;
    for (size_t i = 0; i < axes.shape.size(); ++i) {
      source.push_back(axes.reduced[i] ? r[next_over++] : at[next_space]);
      if (!axes.reduced[i] || keepdims) ++next_space;
    }
    return term(x(source), source);
  });
}

Moments moments(const std::string& name, const Tensor& x, const Axes& axes, DType wide) {
  const Expr count = const_of(wide, static_cast<double>(axes.count()));
  const Shape kept = axes.output(true);
  const Tensor sum = reduce_axes(name + "_sum", x, axes, true, Combine::Add,
                                 [&](const Expr& e, const Indices&) { return cast(wide, e); });
  const Tensor mean =
      compute(name + "_mean", dims_of(kept), [&](const Indices& at) { return sum(at) / count; });
  const Tensor squares = reduce_axes(name + "_squares", x, axes, true, Combine::Add,
                                     [&](const Expr& e, const Indices& at) {
                                       const Expr d = cast(wide, e) - broadcast_load(mean, at);
                                       return d * d;
                                     });
  const Tensor variance = compute(name + "_variance", dims_of(kept),
                                  [&](const Indices& at) { return squares(at) / count; });
  return {mean, variance};
}

Tensor arg_extreme(const std::string& name, const Tensor& x, int64_t axis, bool keepdims,
                   bool largest, bool last) {
  const Axes axes(x.shape(), {axis});
  const Tensor extreme =
      reduce_axes(name + "_value", x, axes, true, largest ? Combine::Max : Combine::Min,
                  [](const Expr& e, const Indices&) { return e; });
  const Expr none = int_imm(last ? -1 : std::numeric_limits<int64_t>::max());
  return reduce_axes(name, x, axes, keepdims, last ? Combine::Max : Combine::Min,
                     [&](const Expr& e, const Indices& at) {
                       Expr hit = eq(e, broadcast_load(extreme, at));
                       if (is_float(e.dtype()))
                         hit = logical_or(std::move(hit), math(MathFn::IsNan, {e}));
                       return select(std::move(hit), at[static_cast<size_t>(axis)], none);
                     });
}

}  // namespace tilewright::tensor
