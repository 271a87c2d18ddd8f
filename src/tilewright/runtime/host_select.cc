// Compress and NonZero pick elements by a condition; Copy takes all.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tilewright/runtime/host_op.h"

namespace tilewright::runtime {

HostResult copy(const HostAttrs&, const HostInputs& inputs) {
  return std::vector<Array>{TW_TRY(inputs.get(0)).clone()};
}

HostResult non_zero(const HostAttrs&, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0));
  const Shape shape = x.shape().empty() ? Shape{1} : x.shape();  // a scalar counts as one element
  return with_keys(x, [&](const auto& keys) {
    const auto set = [](auto key) { return key != 0; };
    const auto count = static_cast<size_t>(std::count_if(keys.begin(), keys.end(), set));
    Array result(DType::I64, {static_cast<int64_t>(shape.size()), static_cast<int64_t>(count)});
    auto out = result.as<int64_t>();
    std::vector<int64_t> at(shape.size());  // place of an element
    size_t found = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      for (size_t axis = 0; axis < at.size() && set(keys[i]); ++axis)
        out[axis * count + found] = at[axis];
      found += set(keys[i]) ? 1 : 0;
      for (size_t axis = at.size(); axis-- > 0 && ++at[axis] == shape[axis];) at[axis] = 0;
    }
    return std::vector<Array>{result};
  });
}

HostResult compress(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0)), condition = TW_TRY(inputs.get(1));
  if (condition.shape().size() != 1 || condition.dtype() != DType::Bool)
    return fail(ErrorKind::Invalid, "the condition is not a vector of bool",
                fmt::format("it is {} {}", name(condition.dtype()), to_string(condition.shape())));
  const std::optional<int64_t> axis = TW_TRY(attrs.maybe_integer("axis"));
  const Array source = axis ? x : x.reshaped({x.size()});
  const size_t at = TW_TRY(resolve_axis(axis.value_or(0), source.shape().size()));
  const AxisView view = axis_view(source.shape(), at);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < std::min(condition.size(), view.extent); ++i)
    if (condition.get_int(i) != 0) kept.push_back(i);
  Shape shape = source.shape();
  shape[at] = static_cast<int64_t>(kept.size());
  Array result(x.dtype(), shape);
  const auto slice = static_cast<size_t>(storage_bytes(x.dtype(), view.inner));
  auto* to = static_cast<char*>(result.data());
  const auto* from = static_cast<const char*>(source.data());
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i : kept) {
      std::memcpy(to, from + static_cast<size_t>(o * view.extent + i) * slice, slice);
      to += slice;
    }
  return std::vector<Array>{result};
}

}  // namespace tilewright::runtime
