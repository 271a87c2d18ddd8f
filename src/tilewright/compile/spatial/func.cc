#include "tilewright/compile/spatial/func.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"
#include "tilewright/schedule/match.h"

namespace tilewright::compile {
namespace {

tl::unexpected<Error> no_match(const Func& func, std::string why) {
  return fail(ErrorKind::Unsupported,
              fmt::format("'{}' is nothing that a spatial accelerator computes", func.name),
              std::move(why),
              "one sum of products of i8 in i32: sum(l in k) i32(a[i, l]) * i32(b[l, j])");
}

/// What a widened factor reads; null: it is something else.
const Load* widened_load(const Expr& factor) {
  const Cast* cast = factor.as<Cast>();
  const Load* load = cast == nullptr || cast->bits ? nullptr : cast->a.as<Load>();
  return load != nullptr && load->buffer.dtype() == DType::I8 ? load : nullptr;
}

class FuncReader {
 public:
  FuncReader(const Func& func, schedule::StoreNest nest) : func_(func), nest_(std::move(nest)) {}

  Result<SpatialFunc> run() {
    const Store& store = nest_.store;
    if (nest_.guard || store.combine != Combine::Add || store.buffer.dtype() != DType::I32)
      return no_match(func_, fmt::format("block '{}' is no sum in i32", nest_.block));
    const Binary* product = store.value.as<Binary>();
    const bool product_of_two = product != nullptr && product->op == BinaryOp::Mul;
    const Load* first = product_of_two ? widened_load(product->a) : nullptr;
    const Load* second = product_of_two ? widened_load(product->b) : nullptr;
    if (first == nullptr || second == nullptr)
      return no_match(func_, "it does not add products of two i8 factors");
    if (first->buffer == second->buffer) return no_match(func_, "both factors are one tensor");
    TW_TRY_STATUS(add_loops());
    TW_TRY_STATUS(add_tensor(0, first->buffer, first->indices));
    TW_TRY_STATUS(add_tensor(1, second->buffer, second->indices));
    TW_TRY_STATUS(add_tensor(cost::kSpatialResult, store.buffer, store.indices));
    for (size_t l = 0; l < result_.layer.loops.size(); ++l)
      result_.layer.loops[l].reduces =
          !result_.layer.moves(cost::kSpatialResult, static_cast<int>(l));
    TW_TRY_STATUS(check_result(store.buffer));
    result_.layer.name = func_.name;
    return std::move(result_);
  }

 private:
  Status add_loops() {
    if (nest_.loops.size() > cost::kSpatialLoops)
      return no_match(func_, fmt::format("it has {} loops, a layer has {} at most",
                                         nest_.loops.size(), cost::kSpatialLoops));
    for (const For& loop : nest_.loops) {
      const auto extent = as_int(loop.extent);
      if (!extent)
        return no_match(func_, fmt::format("loop '{}' has no fixed extent", loop.var.name()));
      result_.layer.loops.push_back({loop.var.name(), *extent, false});
    }
    return {};
  }

  Status add_tensor(int number, const Buffer& buffer, const std::vector<Expr>& indices) {
    const auto param = std::find_if(func_.params.begin(), func_.params.end(),
                                    [&](const Param& p) { return p.buffer == buffer; });
    if (param == func_.params.end() || !param->strides.empty())
      return no_match(func_, fmt::format("'{}' is no dense parameter", buffer.name()));
    if (indices.empty() || indices.size() > cost::kSpatialDims)
      return no_match(func_, fmt::format("'{}' has {} axes", buffer.name(), indices.size()));
    cost::SpatialTensor& tensor = result_.layer.tensors[static_cast<size_t>(number)];
    tensor.name = buffer.name();
    tensor.element_bytes = storage_bytes(buffer.dtype(), 1);
    result_.params[static_cast<size_t>(number)] = static_cast<size_t>(param - func_.params.begin());
    for (size_t axis = 0; axis < indices.size(); ++axis)
      tensor.dims.push_back(TW_TRY(dim_of(buffer, axis, indices[axis])));
    return {};
  }

  Result<cost::SpatialDim> dim_of(const Buffer& buffer, size_t axis, const Expr& index) {
    const arith::Affine sum = arith::as_affine(index);
    cost::SpatialDim dim;
    dim.extent = *as_int(buffer.shape()[axis]);
    dim.begin = -sum.constant;
    for (const auto& [term, stride] : sum.terms) {
      const auto loop = std::find_if(nest_.loops.begin(), nest_.loops.end(), [&](const For& l) {
        const VarRef* var = term.as<VarRef>();
        return var != nullptr && var->var == l.var;
      });
      if (loop == nest_.loops.end() || stride < 1)
        return no_match(
            func_, fmt::format("axis {} of '{}' is no sum of strided loops", axis, buffer.name()));
      dim.terms.push_back({static_cast<int>(loop - nest_.loops.begin()), stride});
    }
    return dim;
  }

  /// STORE writes a box of sums that began at zero: each axis of the result is a loop.
  Status check_result(const Buffer& result) const {
    bool from_zero = false;
    walk(func_.body, [&](const Stmt& stmt) {
      const Store* store = stmt.as<Store>();
      if (store != nullptr && store->buffer == result && store->combine == Combine::Set)
        from_zero = is_const_int(store->value, 0);
    });
    if (!from_zero) return no_match(func_, "its sums do not begin at zero");
    for (const cost::SpatialDim& dim : result_.layer.tensors[cost::kSpatialResult].dims)
      if (dim.terms.size() > 1 || (dim.terms.size() == 1 && dim.terms[0].stride != 1))
        return no_match(func_, "an axis of the result is not one loop");
    return {};
  }

  const Func& func_;
  const schedule::StoreNest nest_;
  SpatialFunc result_;
};

}  // namespace

Result<SpatialFunc> spatial_func(const Func& func) {
  Result<schedule::StoreNest> nest = schedule::nest_of(func);
  if (!nest) return no_match(func, nest.error().why.empty() ? nest.error().what : nest.error().why);
  return FuncReader(func, *std::move(nest)).run();
}

}  // namespace tilewright::compile
