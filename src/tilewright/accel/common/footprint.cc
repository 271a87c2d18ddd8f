#include "tilewright/accel/common/footprint.h"

#include <algorithm>

namespace tilewright::accel {
namespace {

/// Whether a row of `rows` has a place in `range`.
bool hits(const Access& rows, const Range& range) {
  if (!overlap(hull(rows), range)) return false;
  if (rows.pitch <= rows.width) return true;  // no gaps between the rows
  // The last row that starts before the end is the only one that can reach furthest.
  const uint64_t row =
      std::min<uint64_t>((range.end - 1 - rows.address) / rows.pitch, rows.rows - 1);
  return rows.address + row * rows.pitch + rows.width > range.begin;
}

}  // namespace

Access one_row(int memory, uint64_t begin, uint64_t end, bool write) {
  return {memory, begin, end - begin, end - begin, 1, write};
}

bool empty(const Access& access) { return access.rows == 0 || access.width == 0; }

Range hull(const Access& access) {
  return {access.address, access.address + (access.rows - 1) * access.pitch + access.width};
}

bool conflict(const Access& a, const Access& b) {
  if (a.memory != b.memory || !(a.write || b.write) || empty(a) || empty(b)) return false;
  if (!overlap(hull(a), hull(b))) return false;
  const Access& few = a.rows <= b.rows ? a : b;
  const Access& many = a.rows <= b.rows ? b : a;
  for (uint32_t row = 0; row < few.rows; ++row) {
    const uint64_t begin = few.address + row * few.pitch;
    if (hits(many, {begin, begin + few.width})) return true;
  }
  return false;
}

bool conflict(const Footprint& a, const Footprint& b) {
  for (const Access& x : a)
    for (const Access& y : b)
      if (conflict(x, y)) return true;
  return false;
}

}  // namespace tilewright::accel
