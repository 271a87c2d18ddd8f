#include "tilewright/runtime/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tilewright::runtime {
namespace {

bool shape_fits(const ValueSpec& value, const Shape& real) {
  if (real.size() != value.shape.size()) return false;
  for (size_t i = 0; i < real.size(); ++i) {
    const bool dynamic = static_cast<int>(i) == value.dynamic_axis;
    if (real[i] < 0 || (dynamic ? real[i] > value.shape[i] : real[i] != value.shape[i]))
      return false;
  }
  return true;
}

}  // namespace

int64_t spec_bytes(const ValueSpec& value) {
  return storage_bytes(value.dtype, element_count(value.shape));
}

Rows rows_of(const ValueSpec& value, const Shape& real) {
  Rows rows;
  const auto axis = static_cast<size_t>(std::max(value.dynamic_axis, 0));
  for (size_t i = 0; i < axis; ++i) rows.count *= value.shape[i];
  rows.count = std::max<int64_t>(rows.count, 1);
  rows.dense = static_cast<size_t>(storage_bytes(value.dtype, element_count(real)) / rows.count);
  rows.pitch = static_cast<size_t>(spec_bytes(value) / rows.count);
  return rows;
}

void copy_rows(char* to, size_t to_pitch, const char* from, size_t from_pitch, const Rows& rows) {
  if (rows.dense == 0) return;
  for (int64_t i = 0; i < rows.count; ++i)
    std::memmove(to + static_cast<size_t>(i) * to_pitch, from + static_cast<size_t>(i) * from_pitch,
                 rows.dense);
}

std::string shape_text(const ValueSpec& value) {
  std::string text = to_string(value.shape);
  if (value.dynamic_axis >= 0) text += fmt::format(" (axis {} at most)", value.dynamic_axis);
  return text;
}

Status check_shape(const char* what, const ValueSpec& value, const Shape& real) {
  if (shape_fits(value, real)) return {};
  return fail(ErrorKind::Invalid, fmt::format("{} '{}' has the wrong shape", what, value.name),
              fmt::format("{} is expected, {} was given", shape_text(value), to_string(real)));
}

Status check_tensor(const char* what, const ValueSpec& value, const Array& array) {
  if (array.empty_handle())
    return fail(ErrorKind::Invalid, fmt::format("{} '{}' has no data", what, value.name));
  if (array.dtype() != value.dtype)
    return fail(
        ErrorKind::Invalid, fmt::format("{} '{}' has the wrong element type", what, value.name),
        fmt::format("{} is expected, {} was given", name(value.dtype), name(array.dtype())));
  return check_shape(what, value, array.shape());
}

}  // namespace tilewright::runtime
