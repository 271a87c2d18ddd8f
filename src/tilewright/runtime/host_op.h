// What the host functions share: attributes, axes, and one entry point per operator.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tilewright/base/array.h"

namespace tilewright::runtime {

/// The attributes of one call, from the text of a JSON object. A missing key gives the default.
class HostAttrs {
 public:
  HostAttrs();
  ~HostAttrs();
  /// errors: Invalid. Empty text means no attributes.
  Status parse(const std::string& text);

  /// errors: Invalid (wrong type).
  Result<int64_t> integer(const char* key, int64_t fallback) const;
  Result<std::optional<int64_t>> maybe_integer(const char* key) const;
  Result<std::vector<int64_t>> integers(const char* key) const;  ///< empty if absent
  Result<std::string> string(const char* key, const std::string& fallback) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The inputs of one call with checked access.
class HostInputs {
 public:
  explicit HostInputs(const std::vector<Array>& arrays) : arrays_(arrays) {}
  bool has(size_t i) const { return i < arrays_.size() && !arrays_[i].empty_handle(); }
  /// errors: Invalid (absent).
  Result<Array> get(size_t i) const;
  /// The only element of an integer input, or the default if absent. errors: Invalid.
  Result<int64_t> integer(size_t i, int64_t fallback) const;
  /// The same for a bool.
  Result<bool> truth(size_t i, bool fallback) const;
  /// The same for a float input.
  Result<double> real(size_t i, double fallback) const;

 private:
  const std::vector<Array>& arrays_;
};

using HostResult = Result<std::vector<Array>>;

/// The axis counted from the front. errors: Invalid, for axes outside [-rank, rank).
Result<size_t> resolve_axis(int64_t axis, size_t rank);

/// A tensor seen along one axis: element (o, i, n) is at (o * extent + i) * inner + n.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
};
AxisView axis_view(const Shape& shape, size_t axis);

/// Elements as values that compare like the elements do: double, int64_t or uint64_t, whichever
/// holds `array`'s type exactly.
template <class Key>
std::vector<Key> keys_of(const Array& array) {
  std::vector<Key> keys(static_cast<size_t>(array.size()));
  for (int64_t i = 0; i < array.size(); ++i)
    keys[static_cast<size_t>(i)] =
        static_cast<Key>(std::is_same_v<Key, double> ? static_cast<Key>(array.get(i))
                                                     : static_cast<Key>(array.get_int(i)));
  return keys;
}

/// Calls f with the keys of `array`, a span: the elements themselves where they are of such a type,
/// or f32.
template <class F>
auto with_keys(const Array& array, F&& f) {
  const auto copied = [&]<class Key>(Key) {
    const std::vector<Key> keys = keys_of<Key>(array);
    return f(std::span<const Key>(keys));
  };
  if (array.dtype() == DType::F32) return f(std::span<const float>(array.as<float>()));
  if (array.dtype() == DType::I64) return f(std::span<const int64_t>(array.as<int64_t>()));
  if (is_float(array.dtype())) return copied(double{});
  if (is_unsigned_int(array.dtype())) return copied(uint64_t{});
  return copied(int64_t{});
}

/// A total order of keys in which all NaN are equal and above everything else.
template <class Key>
bool key_less(Key a, Key b) {
  return a < b || (b != b && a == a);
}

// source of all: the ONNX operator specification, opset 22. What they refuse of an input's values
// is an error of kind Usage; what contradicts itself in types and shapes is Invalid.
HostResult top_k(const HostAttrs& attrs, const HostInputs& inputs);
HostResult non_max_suppression(const HostAttrs& attrs, const HostInputs& inputs);
HostResult non_zero(const HostAttrs& attrs, const HostInputs& inputs);
HostResult unique(const HostAttrs& attrs, const HostInputs& inputs);
HostResult copy(const HostAttrs& attrs, const HostInputs& inputs);         // ours, not ONNX
HostResult check_range(const HostAttrs& attrs, const HostInputs& inputs);  // ours, not ONNX
HostResult compress(const HostAttrs& attrs, const HostInputs& inputs);
HostResult scatter_elements(const HostAttrs& attrs, const HostInputs& inputs);
HostResult scatter_nd(const HostAttrs& attrs, const HostInputs& inputs);
// For extents that the run decides (host_dynamic.cc); all as in ONNX but the last, which fills up
// along attribute `axis` to the shape `bound`, with `fill`: zero, one, lowest or highest.
HostResult shape_of(const HostAttrs& attrs, const HostInputs& inputs);
HostResult slice(const HostAttrs& attrs, const HostInputs& inputs);
HostResult gather(const HostAttrs& attrs, const HostInputs& inputs);
HostResult concat(const HostAttrs& attrs, const HostInputs& inputs);
HostResult expand(const HostAttrs& attrs, const HostInputs& inputs);
HostResult select(const HostAttrs& attrs, const HostInputs& inputs);  // ours: condition, a, b
HostResult range(const HostAttrs& attrs, const HostInputs& inputs);
HostResult reshape(const HostAttrs& attrs, const HostInputs& inputs);
HostResult pad_to_static(const HostAttrs& attrs, const HostInputs& inputs);  // ours, not ONNX

}  // namespace tilewright::runtime
