// Weights that are known lie in memory in the order that suits their design.
//
//   W[64,32,3,3]: rows of 3, one element a cycle   =>   W[32,3,3,64]: rows of 64, as many a cycle
//   as
//                                                       lie in different banks
#pragma once

#include <optional>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::compile {

/// Axes of a parameter in another order: axis i is the old one order[i].
struct AxisOrder {
  size_t param = 0;
  std::vector<int> order;
};

/// Orders to try: each of the first two axes of known weights as the last one.
std::vector<AxisOrder> weight_orders(const Func& func);
/// `func` with a parameter that lies so.
Func with_order(const Func& func, const AxisOrder& order);
/// The elements of `array` in that order.
Array in_order(const Array& array, const std::vector<int>& order);

}  // namespace tilewright::compile
