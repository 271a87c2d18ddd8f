// Integer arithmetic by its definition over whole numbers, for tests: written as far from the
// interpreter's code as possible.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tilewright/ir/expr.h"

namespace tilewright::interp::testing {

using Wide = __int128;

struct Range {
  Wide lo, hi;
};
inline Range range_of(DType d) {
  if (d == DType::Bool) return {0, 1};
  const int bits = bit_width(d);
  if (is_unsigned_int(d)) return {0, (Wide{1} << bits) - 1};
  return {-(Wide{1} << (bits - 1)), (Wide{1} << (bits - 1)) - 1};
}
/// The value of `d` that is equal to `v` modulo the size of the range.
inline Wide wrapped(Wide v, DType d) {
  const Range r = range_of(d);
  const Wide size = r.hi - r.lo + 1;
  return ((v - r.lo) % size + size) % size + r.lo;
}
inline Wide floor_div(Wide a, Wide b) {
  const Wide q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/// The meaning of `op`. requires: b != 0 for Div and Mod; not And, Or.
inline Wide meaning(BinaryOp op, Wide a, Wide b, DType d) {
  const auto pattern = [](Wide v) { return static_cast<uint64_t>(v); };
  const auto value = [&](uint64_t v) { return wrapped(static_cast<Wide>(v), d); };
  const auto product = [](Wide u, unsigned __int128 v) {
    return static_cast<Wide>(static_cast<unsigned __int128>(u) * v);
  };
  const bool far = b < 0 || b >= bit_width(d);
  switch (op) {
    case BinaryOp::Add:
      return wrapped(a + b, d);
    case BinaryOp::Sub:
      return wrapped(a - b, d);
    case BinaryOp::Mul:
      return wrapped(product(a, static_cast<unsigned __int128>(b)), d);
    case BinaryOp::Div:
      return wrapped(floor_div(a, b), d);
    case BinaryOp::Mod:
      return wrapped(a - floor_div(a, b) * b, d);
    case BinaryOp::Min:
      return std::min(a, b);
    case BinaryOp::Max:
      return std::max(a, b);
    case BinaryOp::Eq:
      return a == b;
    case BinaryOp::Ne:
      return a != b;
    case BinaryOp::Lt:
      return a < b;
    case BinaryOp::Le:
      return a <= b;
    case BinaryOp::Gt:
      return a > b;
    case BinaryOp::Ge:
      return a >= b;
    case BinaryOp::BitAnd:
      return value(pattern(a) & pattern(b));
    case BinaryOp::BitOr:
      return value(pattern(a) | pattern(b));
    case BinaryOp::BitXor:
      return value(pattern(a) ^ pattern(b));
    case BinaryOp::Shl:
      return far ? 0 : wrapped(product(a, static_cast<unsigned __int128>(1) << int(b)), d);
    case BinaryOp::Shr:
      return far ? (a < 0 ? -1 : 0) : floor_div(a, Wide{1} << static_cast<int>(b));
    case BinaryOp::And:
    case BinaryOp::Or:
      break;
  }
  return 0;
}

}  // namespace tilewright::interp::testing
