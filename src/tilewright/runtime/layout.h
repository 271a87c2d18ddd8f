// Values with a dynamic axis: which shapes they admit and how they lie in memory.
#pragma once

#include <string>

#include "tilewright/runtime/program.h"

namespace tilewright::runtime {

/// Bytes of the full shape.
int64_t spec_bytes(const ValueSpec& value);

/// How a value of a real shape lies in memory sized for its bound: rows of the dynamic axis keep
/// the distance of the bound, so that compiled code finds element (i, j) where it expects it.
struct Rows {
  int64_t count = 1;
  size_t dense = 0, pitch = 0;  ///< bytes of a row, and from one row to the next
  bool gaps() const { return count > 1 && dense != pitch; }
};
/// requires: `real` is admissible.
Rows rows_of(const ValueSpec& value, const Shape& real);
void copy_rows(char* to, size_t to_pitch, const char* from, size_t from_pitch, const Rows& rows);

/// `[2, 3] (axis 1 at most)`.
std::string shape_text(const ValueSpec& value);

/// Checks `real` against the value; `what` and the value's name go into the message. errors:
/// Invalid.
Status check_shape(const char* what, const ValueSpec& value, const Shape& real);
/// The same for an array's element type, shape and presence.
Status check_tensor(const char* what, const ValueSpec& value, const Array& array);

}  // namespace tilewright::runtime
