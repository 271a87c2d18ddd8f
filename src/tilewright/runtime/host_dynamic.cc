// Operators on tensors whose extents the run decides: what compiled code, made for fixed extents,
// cannot do. They move elements and compute nothing.
//
// Example: boxes [N, 4], of which the run keeps the first 1000 at most: Shape gives [N, 4], Slice
// the first rows, Concat joins what several levels of a pyramid kept, PadToStatic makes of N rows
// the most there can be, so that compiled code can go on.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tilewright/runtime/host_op.h"

namespace tilewright::runtime {
namespace {

tl::unexpected<Error> misused(std::string what, std::string why = {}) {
  return fail(ErrorKind::Usage, std::move(what), std::move(why));
}

/// The integers of input `i`, which may be a scalar. errors: Invalid (absent, no integers).
Result<std::vector<int64_t>> ints_of(const HostInputs& inputs, size_t i) {
  const Array array = TW_TRY(inputs.get(i));
  if (!is_int(array.dtype()))
    return fail(ErrorKind::Invalid, fmt::format("input {} is not of integers", i));
  return array.to_ints();
}

/// A result may be as large as attribute `bound` says, whatever the values ask for.
Status check_size(const HostAttrs& attrs, const Shape& shape) {
  const Shape bound = TW_TRY(attrs.integers("bound"));
  bool fits = shape.size() == bound.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] >= 0 && shape[i] <= bound[i];
  if (fits) return {};
  return misused(fmt::format("a result of extents {} is asked for", to_string(shape)),
                 fmt::format("there is room for {}", to_string(bound)));
}

/// Copies `count` slices of `bytes` each, `from_step` and `to_step` bytes apart.
void copy_slices(char* to, size_t to_step, const char* from, int64_t from_step, int64_t count,
                 size_t bytes) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + static_cast<size_t>(i) * to_step, from + i * from_step, bytes);
}

char* bytes_of(Array& array) { return static_cast<char*>(array.data()); }
const char* bytes_of(const Array& array) { return static_cast<const char*>(array.data()); }

/// `x` from `start` to `end` along one axis. requires: step not 0.
Array sliced_along(const Array& x, size_t axis, int64_t start, int64_t end, int64_t step) {
  const AxisView view = axis_view(x.shape(), axis);
  const auto counted = [&](int64_t i) {  // from the front, no further than the borders
    const int64_t at = i < 0 ? (i < -view.extent ? -1 : i + view.extent) : i;
    return step > 0 ? std::clamp<int64_t>(at, 0, view.extent)
                    : std::clamp<int64_t>(at, -1, view.extent - 1);
  };
  const int64_t first = counted(start), last = counted(end);
  const int64_t span = step > 0 ? last - first : first - last;
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const int64_t count =
      span <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(span) - 1) / stride) + 1;
  if (step == 1 && count == view.extent) return x;
  Shape shape = x.shape();
  shape[axis] = count;
  Array result(x.dtype(), shape);
  const auto slice = static_cast<size_t>(storage_bytes(x.dtype(), view.inner));
  for (int64_t o = 0; o < view.outer && count > 0; ++o)
    copy_slices(bytes_of(result) + static_cast<size_t>(o * count) * slice, slice,
                bytes_of(x) + static_cast<size_t>(o * view.extent + first) * slice,
                count > 1 ? step * static_cast<int64_t>(slice) : 0, count, slice);
  return result;
}

/// Fills `result` with `x`, seen as of extents `from`: 1, or those of the result. The last axes are
/// written at once: copied where both have the same extents, repeated where `x` has 1.
void spread(const Array& x, const Shape& from, Array& result) {
  const Shape& shape = result.shape();
  if (result.size() == 0) return;
  size_t outer = shape.size();
  const bool repeats = outer > 0 && from[outer - 1] != shape[outer - 1];
  int64_t run = 1;
  while (outer > 0 && (repeats ? from[outer - 1] == 1 : from[outer - 1] == shape[outer - 1]))
    run *= shape[--outer];
  std::vector<int64_t> strides = dense_strides(from), at(outer, 0);
  for (size_t i = 0; i < outer; ++i)
    if (from[i] == 1) strides[i] = 0;
  const auto element = static_cast<size_t>(storage_bytes(x.dtype(), 1));
  const size_t bytes = element * static_cast<size_t>(run);
  int64_t source = 0;
  for (char *to = bytes_of(result), *end = to + result.bytes(); to < end; to += bytes) {
    const char* first = bytes_of(x) + static_cast<size_t>(source) * element;
    size_t done = repeats ? element : bytes;
    std::memcpy(to, first, done);
    for (; done < bytes; done += std::min(done, bytes - done))
      std::memcpy(to + done, to, std::min(done, bytes - done));
    for (size_t axis = outer; axis-- > 0;) {
      source += strides[axis];
      if (++at[axis] < shape[axis]) break;
      source -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
}

/// Sets every element to the neutral one of a reduction. errors: Invalid (no such name).
template <class T>
Status fill_with(std::span<T> values, const std::string& fill) {
  using Limits = std::numeric_limits<T>;
  T value{};
  if (fill == "lowest")
    value = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  else if (fill == "highest")
    value = Limits::has_infinity ? Limits::infinity() : Limits::max();
  else if (fill == "one")
    value = T{1};
  else if (fill != "zero")
    return fail(ErrorKind::Invalid, fmt::format("there is no filling '{}'", fill));
  std::fill(values.begin(), values.end(), value);
  return {};
}

Status fill_array(Array& array, const std::string& fill) {
  switch (array.dtype()) {
    case DType::F32:
      return fill_with(array.as<float>(), fill);
    case DType::F64:
      return fill_with(array.as<double>(), fill);
    case DType::I8:
      return fill_with(array.as<int8_t>(), fill);
    case DType::I16:
      return fill_with(array.as<int16_t>(), fill);
    case DType::I32:
      return fill_with(array.as<int32_t>(), fill);
    case DType::I64:
      return fill_with(array.as<int64_t>(), fill);
    case DType::U8:
    case DType::Bool:
      return fill_with(array.as<uint8_t>(), array.dtype() == DType::Bool && fill == "highest"
                                                ? std::string("one")
                                                : fill);
    case DType::U16:
      return fill_with(array.as<uint16_t>(), fill);
    case DType::U32:
      return fill_with(array.as<uint32_t>(), fill);
    case DType::U64:
      return fill_with(array.as<uint64_t>(), fill);
    default:  // f16, bf16: the same bits in 16
      const bool f16 = array.dtype() == DType::F16;
      const uint16_t infinite = f16 ? 0x7c00 : 0x7f80, one = f16 ? 0x3c00 : 0x3f80;
      const auto values = array.as<uint16_t>();
      const uint16_t value = fill == "highest"  ? infinite
                             : fill == "lowest" ? static_cast<uint16_t>(infinite | 0x8000)
                             : fill == "one"    ? one
                                                : uint16_t{0};
      std::fill(values.begin(), values.end(), value);
      return {};
  }
}

/// The extents that a Reshape's `asked` means for `x`: 0 keeps an extent, -1 is what is left. None
/// is above its `bound`, so that products of them are no larger than the memory that there is.
Result<Shape> reshape_extents(const Array& x, const std::vector<int64_t>& asked, const Shape& bound,
                              bool zero_is_zero) {
  Shape shape = asked;
  int64_t others = 1;
  std::ptrdiff_t open = -1;
  bool fits = asked.size() == bound.size();
  for (size_t i = 0; fits && i < asked.size(); ++i) {
    if (asked[i] == 0 && !zero_is_zero && i < x.shape().size()) shape[i] = x.shape()[i];
    if (shape[i] == -1 && open < 0) {
      open = static_cast<std::ptrdiff_t>(i);
      continue;
    }
    fits = shape[i] >= 0 && shape[i] <= bound[i];
    if (fits) others *= shape[i];
  }
  if (fits && open >= 0) {
    const auto i = static_cast<size_t>(open);
    shape[i] = others == 0 ? 0 : x.size() / others;
    fits = shape[i] <= bound[i];
  }
  if (fits && element_count(shape) == x.size()) return shape;
  return misused(fmt::format("{} cannot become {}", to_string(x.shape()), to_string(asked)),
                 fmt::format("there is room for {}", to_string(bound)));
}

}  // namespace

HostResult shape_of(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0));
  const auto rank = static_cast<int64_t>(x.shape().size());
  const auto place = [&](int64_t i) {
    return static_cast<size_t>(std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank));
  };
  const size_t start = place(TW_TRY(attrs.integer("start", 0)));
  const size_t end = std::max(start, place(TW_TRY(attrs.integer("end", rank))));
  Array result(DType::I64, {static_cast<int64_t>(end - start)});
  for (size_t i = start; i < end; ++i)
    result.set_int(static_cast<int64_t>(i - start), x.shape()[i]);
  return std::vector<Array>{result};
}

HostResult slice(const HostAttrs&, const HostInputs& inputs) {
  Array x = TW_TRY(inputs.get(0));
  const std::vector<int64_t> starts = TW_TRY(ints_of(inputs, 1)), ends = TW_TRY(ints_of(inputs, 2));
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (inputs.has(3)) axes = TW_TRY(ints_of(inputs, 3));
  if (inputs.has(4)) steps = TW_TRY(ints_of(inputs, 4));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return fail(ErrorKind::Invalid, "starts, ends, axes and steps differ in length");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) return misused("a step is 0");
    const size_t axis = TW_TRY(resolve_axis(axes[i], x.shape().size()));
    x = sliced_along(x, axis, starts[i], ends[i], steps[i]);
  }
  return std::vector<Array>{x};
}

HostResult gather(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0)), indices = TW_TRY(inputs.get(1));
  const size_t axis = TW_TRY(resolve_axis(TW_TRY(attrs.integer("axis", 0)), x.shape().size()));
  const AxisView view = axis_view(x.shape(), axis);
  const std::vector<int64_t> places = TW_TRY(ints_of(inputs, 1));
  Shape shape(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(axis) + 1,
               x.shape().end());
  TW_TRY_STATUS(check_size(attrs, shape));
  const bool counts = TW_TRY(inputs.truth(2, true));
  Array result(x.dtype(), shape);
  const auto row = static_cast<size_t>(storage_bytes(x.dtype(), view.inner));
  char* to = bytes_of(result);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t index : places) {
      const bool there = index >= -view.extent && index < view.extent;
      if (!there && counts)
        return misused(fmt::format("index {} is out of range", index),
                       fmt::format("axis {} of {}", axis, to_string(x.shape())));
      const int64_t at = index < 0 ? index + view.extent : index;
      if (there)
        std::memcpy(to, bytes_of(x) + static_cast<size_t>(o * view.extent + at) * row, row);
      to += row;
    }
  return std::vector<Array>{result};
}

HostResult concat(const HostAttrs& attrs, const HostInputs& inputs) {
  std::vector<Array> parts{TW_TRY(inputs.get(0))};
  while (inputs.has(parts.size())) parts.push_back(TW_TRY(inputs.get(parts.size())));
  Shape shape = parts[0].shape();
  const size_t axis = TW_TRY(resolve_axis(TW_TRY(attrs.integer("axis", 0)), shape.size()));
  shape[axis] = 0;
  for (const Array& part : parts) {
    Shape others = part.shape();
    const bool ranks = others.size() == shape.size() && part.dtype() == parts[0].dtype();
    if (ranks) others[axis] = shape[axis];
    if (!ranks || others != shape)
      return misused("what is joined does not fit",
                     fmt::format("{} and {}", to_string(shape), to_string(part.shape())));
    shape[axis] += part.shape()[axis];
  }
  TW_TRY_STATUS(check_size(attrs, shape));
  Array result(parts[0].dtype(), shape);
  const AxisView whole = axis_view(shape, axis);
  const auto pitch = static_cast<size_t>(storage_bytes(result.dtype(), whole.extent * whole.inner));
  size_t offset = 0;
  for (const Array& part : parts) {
    const auto bytes =
        static_cast<size_t>(storage_bytes(part.dtype(), part.shape()[axis] * whole.inner));
    if (bytes > 0)
      copy_slices(bytes_of(result) + offset, pitch, bytes_of(part), static_cast<int64_t>(bytes),
                  whole.outer, bytes);
    offset += bytes;
  }
  return std::vector<Array>{result};
}

HostResult expand(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0));
  Shape shape = TW_TRY(ints_of(inputs, 1)), from = x.shape();
  const size_t rank = std::max(shape.size(), from.size());
  shape.insert(shape.begin(), rank - shape.size(), 1);
  from.insert(from.begin(), rank - from.size(), 1);
  for (size_t i = 0; i < rank; ++i) {
    if (shape[i] == 1) shape[i] = from[i];
    if (from[i] != 1 && from[i] != shape[i])
      return misused(fmt::format("{} does not broadcast to {}", to_string(from), to_string(shape)));
  }
  TW_TRY_STATUS(check_size(attrs, shape));
  Array result(x.dtype(), shape);
  spread(x, from, result);
  return std::vector<Array>{result};
}

HostResult select(const HostAttrs&, const HostInputs& inputs) {
  return std::vector<Array>{TW_TRY(inputs.get(TW_TRY(inputs.truth(0, true)) ? 1 : 2))};
}

HostResult range(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array first = TW_TRY(inputs.get(0));
  const int64_t start = TW_TRY(inputs.integer(0, 0)), limit = TW_TRY(inputs.integer(1, 0));
  const int64_t delta = TW_TRY(inputs.integer(2, 1));
  if (delta == 0) return misused("the distance of a Range is 0");
  int64_t count = 0;
  if (delta > 0 ? start < limit : start > limit) {
    // Differences of any two i64 fit u64.
    const auto from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(limit);
    const uint64_t way = delta > 0 ? to - from : from - to;
    const uint64_t step =
        delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t steps = (way - 1) / step + 1;
    count = steps > INT64_MAX ? INT64_MAX : static_cast<int64_t>(steps);
  }
  TW_TRY_STATUS(check_size(attrs, {count}));
  Array result(first.dtype(), {count});
  uint64_t value = static_cast<uint64_t>(start);  // the last step may leave i64
  for (int64_t i = 0; i < count; ++i, value += static_cast<uint64_t>(delta))
    result.set_int(i, static_cast<int64_t>(value));
  return std::vector<Array>{result};
}

HostResult reshape(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0));
  const bool zero_is_zero = TW_TRY(attrs.integer("allowzero", 0)) != 0;
  const Shape bound = TW_TRY(attrs.integers("bound"));
  const std::vector<int64_t> asked = TW_TRY(ints_of(inputs, 1));
  return std::vector<Array>{x.reshaped(TW_TRY(reshape_extents(x, asked, bound, zero_is_zero)))};
}

HostResult pad_to_static(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array x = TW_TRY(inputs.get(0));
  const Shape bound = TW_TRY(attrs.integers("bound"));
  const size_t axis = TW_TRY(resolve_axis(TW_TRY(attrs.integer("axis", 0)), x.shape().size()));
  bool fits = bound.size() == x.shape().size();
  for (size_t i = 0; fits && i < bound.size(); ++i)
    fits = i == axis ? x.shape()[i] <= bound[i] : x.shape()[i] == bound[i];
  if (!fits)
    return fail(ErrorKind::Invalid,
                fmt::format("{} does not fit {}", to_string(x.shape()), to_string(bound)));
  const std::string fill = TW_TRY(attrs.string("fill", "zero"));
  const AxisView from = axis_view(x.shape(), axis), to = axis_view(bound, axis);
  Array result(x.dtype(), bound);
  // New arrays are zero. Whether the name is known is looked at in any case.
  Array tail = fill == "zero" ? Array(x.dtype(), {0})
                              : Array(x.dtype(), {(to.extent - from.extent) * to.inner});
  TW_TRY_STATUS(fill_array(tail, fill));
  if (from.extent == to.extent) return std::vector<Array>{x};
  const auto bytes = static_cast<size_t>(storage_bytes(x.dtype(), from.extent * from.inner));
  const auto pitch = static_cast<size_t>(storage_bytes(x.dtype(), to.extent * to.inner));
  for (int64_t o = 0; o < from.outer; ++o) {
    char* row = bytes_of(result) + static_cast<size_t>(o) * pitch;
    if (bytes > 0) std::memcpy(row, bytes_of(x) + static_cast<size_t>(o) * bytes, bytes);
    if (tail.size() > 0)
      std::memcpy(row + bytes, bytes_of(tail), static_cast<size_t>(tail.bytes()));
  }
  return std::vector<Array>{result};
}

}  // namespace tilewright::runtime
