#include "tilewright/base/array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tilewright/base/check.h"

namespace tilewright {
namespace {

/// Truncates toward zero, saturates, NaN gives 0: the meaning of a float-to-integer cast.
template <class T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  const double lo = static_cast<double>(std::numeric_limits<T>::min());
  const double hi = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= lo) return std::numeric_limits<T>::min();
  if (value >= hi) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

/// Calls f with a null pointer of the C++ type that stores `dtype` (16-bit floats: uint16_t).
template <class F>
auto dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F32:
      return f(static_cast<float*>(nullptr));
    case DType::F64:
      return f(static_cast<double*>(nullptr));
    case DType::I8:
      return f(static_cast<int8_t*>(nullptr));
    case DType::U8:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::Bool:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::I16:
      return f(static_cast<int16_t*>(nullptr));
    case DType::F16:
    case DType::BF16:
    case DType::U16:
      return f(static_cast<uint16_t*>(nullptr));
    case DType::I32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::U32:
      return f(static_cast<uint32_t*>(nullptr));
    case DType::I64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::U64:
      return f(static_cast<uint64_t*>(nullptr));
  }
  TW_CHECK(false, "unknown dtype");
}

}  // namespace

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Array::Array(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  size_ = element_count(shape_);
  constexpr size_t kAlignment = 64;
  const size_t bytes = (static_cast<size_t>(std::max<int64_t>(this->bytes(), 1)) + kAlignment - 1) /
                       kAlignment * kAlignment;
  // calloc knows which memory is zero already: large arrays are not written twice.
  void* memory = std::calloc(1, bytes + kAlignment);
  if (memory == nullptr) throw std::bad_alloc();
  owner_ = std::shared_ptr<void>(memory, std::free);
  size_t room = bytes + kAlignment;
  data_ = std::align(kAlignment, bytes, memory, room);
}

Array::Array(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data)
    : dtype_(dtype), shape_(std::move(shape)), owner_(std::move(owner)), data_(data) {
  size_ = element_count(shape_);
}

Array Array::of(DType dtype, std::span<const double> values) {
  Array array(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.set(static_cast<int64_t>(i), values[i]);
  return array;
}

Array Array::scalar(DType dtype, double value) {
  Array array(dtype, {});
  array.set(0, value);
  return array;
}

double Array::get(int64_t i) const {
  if (dtype_ == DType::F16) return f16_to_f32(as<uint16_t>()[i]);
  if (dtype_ == DType::BF16) return bf16_to_f32(as<uint16_t>()[i]);
  return dispatch(dtype_, [&]<class T>(T*) { return static_cast<double>(as<T>()[i]); });
}

int64_t Array::get_int(int64_t i) const {
  if (is_float(dtype_)) return to_integer<int64_t>(get(i));
  return dispatch(dtype_, [&]<class T>(T*) { return static_cast<int64_t>(as<T>()[i]); });
}

void Array::set(int64_t i, double value) {
  if (dtype_ == DType::F16) {
    as<uint16_t>()[i] = f32_to_f16(static_cast<float>(value));
  } else if (dtype_ == DType::BF16) {
    as<uint16_t>()[i] = f32_to_bf16(static_cast<float>(value));
  } else if (dtype_ == DType::Bool) {
    as<uint8_t>()[i] = value != 0;
  } else {
    dispatch(dtype_, [&]<class T>(T*) {
      if constexpr (std::is_floating_point_v<T>) {
        as<T>()[i] = static_cast<T>(value);
      } else {
        as<T>()[i] = to_integer<T>(value);
      }
    });
  }
}

void Array::set_int(int64_t i, int64_t value) {
  if (is_float(dtype_) || dtype_ == DType::Bool) return set(i, static_cast<double>(value));
  dispatch(dtype_, [&]<class T>(T*) { as<T>()[i] = static_cast<T>(value); });
}

Array Array::clone() const {
  Array copy(dtype_, shape_);
  std::memcpy(copy.data_, data_, static_cast<size_t>(bytes()));
  return copy;
}

Array Array::reshaped(Shape shape) const {
  TW_CHECK(element_count(shape) == size_, "{} -> {}", to_string(shape_), to_string(shape));
  Array view = *this;
  view.shape_ = std::move(shape);
  return view;
}

Array Array::cast(DType dtype) const {
  Array out(dtype, shape_);
  const bool through_int = !is_float(dtype_) && !is_float(dtype);
  for (int64_t i = 0; i < size_; ++i) through_int ? out.set_int(i, get_int(i)) : out.set(i, get(i));
  return out;
}

std::vector<int64_t> Array::to_ints() const {
  std::vector<int64_t> values(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) values[i] = get_int(i);
  return values;
}

std::vector<double> Array::to_doubles() const {
  std::vector<double> values(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) values[i] = get(i);
  return values;
}

bool identical(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

}  // namespace tilewright
