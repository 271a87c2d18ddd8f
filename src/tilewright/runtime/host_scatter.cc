// ScatterElements and ScatterND: indices may collide, so updates are applied one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "tilewright/runtime/host_op.h"

namespace tilewright::runtime {
namespace {

enum class Reduction { None, Add, Mul, Max, Min };

Result<Reduction> parse_reduction(const HostAttrs& attrs) {
  struct Row {
    const char* text;
    Reduction reduction;
  };
  constexpr Row kRows[] = {{"none", Reduction::None},
                           {"add", Reduction::Add},
                           {"mul", Reduction::Mul},
                           {"max", Reduction::Max},
                           {"min", Reduction::Min}};
  const std::string text = TW_TRY(attrs.string("reduction", "none"));
  for (const Row& row : kRows)
    if (text == row.text) return row.reduction;
  return fail(ErrorKind::Invalid, fmt::format("unknown reduction '{}'", text),
              "it is one of none, add, mul, max, min");
}

/// a op b; integers wrap, a NaN wins.
template <class T>
T reduce(Reduction reduction, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    if (reduction == Reduction::Add) return static_cast<T>(x + y);
    if (reduction == Reduction::Mul) return static_cast<T>(x * y);
  } else {
    if (reduction == Reduction::Add) return a + b;
    if (reduction == Reduction::Mul) return a * b;
    if (a != a || b != b) return a != a ? a : b;
  }
  return (reduction == Reduction::Max ? a < b : b < a) ? b : a;
}

template <class T>
void apply_as(Reduction reduction, char* to, const char* from) {
  T a, b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  a = reduce(reduction, a, b);
  std::memcpy(to, &a, sizeof a);
}

template <float (*Decode)(uint16_t), uint16_t (*Encode)(float)>
void apply_half(Reduction reduction, char* to, const char* from) {
  uint16_t a, b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  a = Encode(reduce(reduction, Decode(a), Decode(b)));
  std::memcpy(to, &a, sizeof a);
}

/// Add is or, mul is and; bytes other than 0 and 1 count as 1.
void apply_bool(Reduction reduction, char* to, const char* from) {
  *to = static_cast<char>(reduce<bool>(reduction, *to != 0, *from != 0));
}

using Apply = void (*)(Reduction, char*, const char*);

Apply apply_for(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return apply_as<float>;
    case DType::F64:
      return apply_as<double>;
    case DType::F16:
      return apply_half<f16_to_f32, f32_to_f16>;
    case DType::BF16:
      return apply_half<bf16_to_f32, f32_to_bf16>;
    case DType::I8:
      return apply_as<int8_t>;
    case DType::U8:
      return apply_as<uint8_t>;
    case DType::Bool:
      return apply_bool;
    case DType::I16:
      return apply_as<int16_t>;
    case DType::U16:
      return apply_as<uint16_t>;
    case DType::I32:
      return apply_as<int32_t>;
    case DType::U32:
      return apply_as<uint32_t>;
    case DType::I64:
      return apply_as<int64_t>;
    case DType::U64:
      return apply_as<uint64_t>;
  }
  return nullptr;
}

/// Applies `count` consecutive updates.
class Updater {
 public:
  Updater(Array& to, const Array& updates, Reduction reduction)
      : to_(static_cast<char*>(to.data())),
        from_(static_cast<const char*>(updates.data())),
        bytes_(static_cast<size_t>(storage_bytes(to.dtype(), 1))),
        reduction_(reduction),
        apply_(apply_for(to.dtype())) {}

  void update(int64_t to, int64_t from, int64_t count) {
    char* target = to_ + static_cast<size_t>(to) * bytes_;
    const char* source = from_ + static_cast<size_t>(from) * bytes_;
    if (reduction_ == Reduction::None) {
      if (count == 1 && bytes_ == sizeof(float)) {  // a call costs more than such a copy
        std::memcpy(target, source, sizeof(float));
      } else {
        std::memcpy(target, source, static_cast<size_t>(count) * bytes_);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i, target += bytes_, source += bytes_)
      apply_(reduction_, target, source);
  }

 private:
  char* to_;
  const char* from_;
  size_t bytes_;
  Reduction reduction_;
  Apply apply_;
};

/// An index counted from the front. errors: Usage, outside [-extent, extent).
Result<int64_t> resolve_index(int64_t index, int64_t extent, size_t axis) {
  if (index >= -extent && index < extent) return index < 0 ? index + extent : index;
  return fail(
      ErrorKind::Usage,
      fmt::format("index {} of input 1 is outside axis {} with {} elements", index, axis, extent));
}

Status check_types(const Array& data, const Array& indices, const Array& updates) {
  if (indices.dtype() != DType::I64 && indices.dtype() != DType::I32)
    return fail(ErrorKind::Invalid,
                fmt::format("indices are {}, not i32 or i64", name(indices.dtype())));
  if (updates.dtype() != data.dtype())
    return fail(ErrorKind::Invalid, fmt::format("updates are {}, the data {}",
                                                name(updates.dtype()), name(data.dtype())));
  return {};
}

tl::unexpected<Error> shape_error(const Array& data, const Array& indices, const Array& updates) {
  return fail(ErrorKind::Invalid, "data, indices and updates do not fit together",
              fmt::format("data {}, indices {}, updates {}", to_string(data.shape()),
                          to_string(indices.shape()), to_string(updates.shape())));
}

/// Along the last axis: the places of a row of updates lie in one row of the data.
template <class Index>
Status scatter_in_rows(std::span<const Index> indices, const Shape& shape, const Shape& data,
                       Updater& updater) {
  const size_t last = data.size() - 1;
  const std::vector<int64_t> strides = dense_strides(data);
  const auto count = static_cast<int64_t>(indices.size());
  for (int64_t i = 0; i < count; i += shape[last]) {
    int64_t row = 0, rest = i / shape[last];
    for (size_t d = last; d-- > 0; rest /= shape[d]) row += rest % shape[d] * strides[d];
    for (int64_t j = i; j < i + shape[last]; ++j) {
      int64_t index = indices[static_cast<size_t>(j)];
      if (index < 0 || index >= data[last]) index = TW_TRY(resolve_index(index, data[last], last));
      updater.update(row + index, j, 1);
    }
  }
  return {};
}

/// Elements behind each other with the same index go to places behind each other, as far as the
/// axes after `axis` are as long as the data's: such a run is one update. Where an index is
/// broadcast, as by exporters that scatter whole rows, a row is one.
template <class Index>
Status scatter_along(std::span<const Index> indices, const Shape& shape, const Shape& data,
                     size_t axis, Updater& updater) {
  const size_t rank = data.size();
  if (axis + 1 == rank) return scatter_in_rows(indices, shape, data, updater);
  const std::vector<int64_t> strides = dense_strides(data);
  int64_t inner = 1;
  for (size_t d = rank; d-- > axis + 1 && inner > 0; inner *= shape[d])
    if (shape[d] != data[d]) inner = 0;
  inner = std::max<int64_t>(inner, 1);
  std::vector<int64_t> at(rank, 0);
  const auto count = static_cast<int64_t>(indices.size());
  for (int64_t i = 0, n = 0, left = inner; i < count; i += n) {
    const Index index = indices[static_cast<size_t>(i)];
    int64_t to = index;
    if (to < 0 || to >= data[axis]) to = TW_TRY(resolve_index(index, data[axis], axis));
    to *= strides[axis];
    for (size_t d = 0; d < rank; ++d)
      if (d != axis) to += at[d] * strides[d];
    const int64_t most = left;  // of the elements behind one index of `axis`
    for (n = 1; n < most && indices[static_cast<size_t>(i + n)] == index;) ++n;
    updater.update(to, i, n);
    left = left == n ? inner : left - n;
    at[rank - 1] += n;
    for (size_t d = rank - 1; d > 0 && at[d] >= shape[d]; --d) {
      at[d - 1] += at[d] / shape[d];
      at[d] %= shape[d];
    }
  }
  return {};
}

}  // namespace

HostResult scatter_elements(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array data = TW_TRY(inputs.get(0)), indices = TW_TRY(inputs.get(1)),
              updates = TW_TRY(inputs.get(2));
  const Reduction reduction = TW_TRY(parse_reduction(attrs));
  const size_t rank = data.shape().size();
  const size_t axis = TW_TRY(resolve_axis(TW_TRY(attrs.integer("axis", 0)), rank));
  TW_TRY_STATUS(check_types(data, indices, updates));
  bool fits = indices.shape() == updates.shape() && indices.shape().size() == rank;
  for (size_t i = 0; fits && i < rank; ++i)
    fits = i == axis || indices.shape()[i] <= data.shape()[i];
  if (!fits) return shape_error(data, indices, updates);

  Array result = data.clone();
  Updater updater(result, updates, reduction);
  TW_TRY_STATUS(
      indices.dtype() == DType::I64
          ? scatter_along(indices.as<int64_t>(), indices.shape(), data.shape(), axis, updater)
          : scatter_along(indices.as<int32_t>(), indices.shape(), data.shape(), axis, updater));
  return std::vector<Array>{result};
}

HostResult scatter_nd(const HostAttrs& attrs, const HostInputs& inputs) {
  const Array data = TW_TRY(inputs.get(0)), indices = TW_TRY(inputs.get(1)),
              updates = TW_TRY(inputs.get(2));
  const Reduction reduction = TW_TRY(parse_reduction(attrs));
  TW_TRY_STATUS(check_types(data, indices, updates));
  const size_t rank = data.shape().size();
  if (indices.shape().empty() || indices.shape().back() < 0 ||
      static_cast<size_t>(indices.shape().back()) > rank)
    return shape_error(data, indices, updates);
  const auto depth = static_cast<size_t>(indices.shape().back());
  Shape expected(indices.shape().begin(), indices.shape().end() - 1);
  const int64_t tuples = element_count(expected);
  expected.insert(expected.end(), data.shape().begin() + static_cast<std::ptrdiff_t>(depth),
                  data.shape().end());
  if (updates.shape() != expected) return shape_error(data, indices, updates);

  Array result = data.clone();
  Updater updater(result, updates, reduction);
  const std::vector<int64_t> strides = dense_strides(data.shape());
  const int64_t slice = tuples == 0 ? 0 : updates.size() / tuples;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t to = 0;
    for (size_t d = 0; d < depth; ++d) {
      const int64_t index =
          indices.get_int(t * static_cast<int64_t>(depth) + static_cast<int64_t>(d));
      to += TW_TRY(resolve_index(index, data.shape()[d], d)) * strides[d];
    }
    updater.update(to, t * slice, slice);
  }
  return std::vector<Array>{result};
}

}  // namespace tilewright::runtime
