#include "tilewright/compile/fpga/weights.h"

#include <cstring>

#include "tilewright/ir/walk.h"

namespace tilewright::compile {
namespace {

template <class T>
std::vector<T> permuted(const std::vector<T>& all, const std::vector<int>& order) {
  std::vector<T> out;
  for (const int axis : order) out.push_back(all[static_cast<size_t>(axis)]);
  return out;
}

}  // namespace

std::vector<AxisOrder> weight_orders(const Func& func) {
  std::vector<AxisOrder> orders;
  for (size_t p = 0; p < func.params.size(); ++p) {
    const Param& param = func.params[p];
    const auto rank = static_cast<int>(param.buffer.shape().size());
    const bool whole_bytes = bit_width(param.buffer.dtype()) % 8 == 0;
    if (param.mode != ParamMode::Const || param.values || rank < 2 || !whole_bytes) continue;
    for (int last = 0; last < 2; ++last) {
      if (last == rank - 1) continue;
      AxisOrder order{p, {}};
      for (int axis = 0; axis < rank; ++axis)
        if (axis != last) order.order.push_back(axis);
      order.order.push_back(last);
      orders.push_back(std::move(order));
    }
  }
  return orders;
}

Func with_order(const Func& func, const AxisOrder& order) {
  Func out = func;
  const Buffer& old = func.params[order.param].buffer;
  const Buffer made(old.name(), old.dtype(), permuted(old.shape(), order.order), old.scope());
  out.params[order.param].buffer = made;
  const auto moved = [&](const Expr& e) {
    const auto* read = e.as<Load>();
    return read != nullptr && read->buffer == old ? load(made, permuted(read->indices, order.order))
                                                  : e;
  };
  out.body = rewrite(func.body, {}, [&](const Expr& e) { return rewrite(e, moved); });
  return out;
}

Array in_order(const Array& array, const std::vector<int>& order) {
  const Shape shape = permuted(array.shape(), order);
  Array out(array.dtype(), shape);
  const auto width = static_cast<size_t>(bit_width(array.dtype()) / 8);
  std::vector<int64_t> strides(order.size());  // of the old array, in elements
  int64_t stride = 1;
  for (size_t axis = order.size(); axis-- > 0; stride *= array.shape()[axis])
    strides[axis] = stride;
  strides = permuted(strides, order);
  std::vector<int64_t> at(order.size(), 0);
  auto* to = static_cast<char*>(out.data());
  for (int64_t n = 0, from = 0; n < array.size(); ++n, to += width) {
    std::memcpy(to, static_cast<const char*>(array.data()) + static_cast<size_t>(from) * width,
                width);
    for (size_t axis = at.size(); axis-- > 0;) {
      from += strides[axis];
      if (++at[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return out;
}

}  // namespace tilewright::compile
