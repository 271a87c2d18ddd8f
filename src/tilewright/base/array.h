// Host arrays: dtype, shape and 64-byte aligned bytes, row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/result.h"

namespace tilewright {

using Shape = std::vector<int64_t>;

/// Product of the dimensions (1 for a scalar).
int64_t element_count(const Shape& shape);
/// `[2, 3]`.
std::string to_string(const Shape& shape);
/// Row-major strides in elements.
std::vector<int64_t> dense_strides(const Shape& shape);

/// A dense row-major array that shares its bytes when copied; `clone` copies them.
class Array {
 public:
  Array() = default;
  /// Zero-filled.
  Array(DType dtype, Shape shape);
  /// Views memory owned by `owner` (a mapped file, another array). requires: aligned for dtype.
  Array(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data);

  /// A rank-1 array of `values` converted to `dtype`.
  static Array of(DType dtype, std::span<const double> values);
  /// A rank-0 array.
  static Array scalar(DType dtype, double value);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return size_; }  ///< elements
  int64_t bytes() const { return storage_bytes(dtype_, size_); }
  bool empty_handle() const { return data_ == nullptr; }

  void* data() { return data_; }
  const void* data() const { return data_; }
  template <class T>
  std::span<T> as() {
    return {static_cast<T*>(data_), static_cast<size_t>(size_)};
  }
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data_), static_cast<size_t>(size_)};
  }

  /// Element at a flat row-major position, as double or int64 (wide integers: use the int forms).
  double get(int64_t i) const;
  int64_t get_int(int64_t i) const;
  void set(int64_t i, double value);
  void set_int(int64_t i, int64_t value);

  Array clone() const;
  /// The same bytes under another shape. requires: equal element count.
  Array reshaped(Shape shape) const;
  /// Element-wise conversion; float to integer truncates and saturates.
  Array cast(DType dtype) const;

  std::vector<int64_t> to_ints() const;
  std::vector<double> to_doubles() const;

 private:
  DType dtype_ = DType::F32;
  Shape shape_;
  int64_t size_ = 0;
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
};

/// Bitwise equality of dtype, shape and contents.
bool identical(const Array& a, const Array& b);

/// NumPy files. errors: Io, Parse (with the byte offset), Unsupported dtype or Fortran order.
Result<Array> read_npy(const std::string& path);
Status write_npy(const std::string& path, const Array& array);

}  // namespace tilewright
