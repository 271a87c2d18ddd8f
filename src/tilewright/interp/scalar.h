// Arithmetic on single values, exactly as docs/ir.md sections 3 and 4 define it. Private to interp.
//
// Values travel in three C++ types: integers and bool as int64_t (u64 as its bit pattern), f16,
// bf16 and f32 as float, f64 as double.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tilewright/base/check.h"
#include "tilewright/base/dtype.h"
#include "tilewright/ir/expr.h"

namespace tilewright::interp {

/// Integer division by zero: the program has no meaning there (section 4.2).
struct DivisionByZero {};

/// How values of an integer type are stored and wrapped.
template <class Native>
struct IntType {
  using Repr = int64_t;
  using Stored = Native;
  static constexpr bool kFloat = false;
  static constexpr bool kSigned = std::is_signed_v<Native>;
  static constexpr int kBits = 8 * sizeof(Native);
  static Repr wrap(uint64_t bits) { return static_cast<int64_t>(static_cast<Native>(bits)); }
  static Repr read(Stored s) { return static_cast<int64_t>(s); }
  static Stored write(Repr v) { return static_cast<Native>(v); }
};
struct BoolType {
  using Repr = int64_t;
  using Stored = uint8_t;
  static constexpr bool kFloat = false;
  static constexpr bool kSigned = false;
  static constexpr int kBits = 8;
  static Repr wrap(uint64_t bits) { return bits != 0; }
  static Repr read(Stored s) { return s != 0; }
  static Stored write(Repr v) { return v != 0; }
};
template <class Native>
struct FloatType {
  using Repr = Native;
  using Stored = Native;
  static constexpr bool kFloat = true;
  static constexpr int kBits = 8 * sizeof(Native);
  static Repr round(Repr v) { return v; }
  static Repr read(Stored s) { return s; }
  static Stored write(Repr v) { return v; }
};
template <float (*Decode)(uint16_t), uint16_t (*Encode)(float)>
struct HalfType {
  using Repr = float;
  using Stored = uint16_t;
  static constexpr bool kFloat = true;
  static constexpr int kBits = 16;
  static Repr round(Repr v) { return Decode(Encode(v)); }
  static Repr read(Stored s) { return Decode(s); }
  static Stored write(Repr v) { return Encode(v); }
};

/// Calls f with a value of the type description of `dtype`.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F32:
      return f(FloatType<float>{});
    case DType::F64:
      return f(FloatType<double>{});
    case DType::F16:
      return f(HalfType<f16_to_f32, f32_to_f16>{});
    case DType::BF16:
      return f(HalfType<bf16_to_f32, f32_to_bf16>{});
    case DType::I8:
      return f(IntType<int8_t>{});
    case DType::U8:
      return f(IntType<uint8_t>{});
    case DType::I16:
      return f(IntType<int16_t>{});
    case DType::U16:
      return f(IntType<uint16_t>{});
    case DType::I32:
      return f(IntType<int32_t>{});
    case DType::U32:
      return f(IntType<uint32_t>{});
    case DType::I64:
      return f(IntType<int64_t>{});
    case DType::U64:
      return f(IntType<uint64_t>{});
    case DType::Bool:
      return f(BoolType{});
  }
  TW_CHECK(false, "unknown dtype");
}

template <class T>
typename T::Repr read_element(const std::byte* data, int64_t offset) {
  typename T::Stored stored;
  std::memcpy(&stored, data + offset * static_cast<int64_t>(sizeof stored), sizeof stored);
  return T::read(stored);
}
template <class T>
void write_element(std::byte* data, int64_t offset, typename T::Repr value) {
  const typename T::Stored stored = T::write(value);
  std::memcpy(data + offset * static_cast<int64_t>(sizeof stored), &stored, sizeof stored);
}

/// Section 4.2: wraps; division rounds down; shifts by the width or more shift everything out.
template <class T, BinaryOp Op>
int64_t int_binary(int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool less = T::kSigned ? a < b : ua < ub;
  if constexpr (Op == BinaryOp::Add) return T::wrap(ua + ub);
  if constexpr (Op == BinaryOp::Sub) return T::wrap(ua - ub);
  if constexpr (Op == BinaryOp::Mul) return T::wrap(ua * ub);
  if constexpr (Op == BinaryOp::Div || Op == BinaryOp::Mod) {
    constexpr bool kDiv = Op == BinaryOp::Div;
    if (b == 0) throw DivisionByZero{};
    if constexpr (!T::kSigned) return T::wrap(kDiv ? ua / ub : ua % ub);
    if (b == -1) return kDiv ? T::wrap(-ua) : 0;  // the lowest value has no negative
    const int64_t quotient = a / b, remainder = a % b;
    const bool down = remainder != 0 && (remainder < 0) != (b < 0);
    return kDiv ? quotient - down : remainder + (down ? b : 0);
  }
  if constexpr (Op == BinaryOp::Min) return less ? a : b;
  if constexpr (Op == BinaryOp::Max) return less ? b : a;
  if constexpr (Op == BinaryOp::Eq) return a == b;
  if constexpr (Op == BinaryOp::Ne) return a != b;
  if constexpr (Op == BinaryOp::Lt) return less;
  if constexpr (Op == BinaryOp::Le) return less || a == b;
  if constexpr (Op == BinaryOp::Gt) return !less && a != b;
  if constexpr (Op == BinaryOp::Ge) return !less;
  if constexpr (Op == BinaryOp::BitAnd) return a & b;
  if constexpr (Op == BinaryOp::BitOr) return a | b;
  if constexpr (Op == BinaryOp::BitXor) return a ^ b;
  if constexpr (Op == BinaryOp::Shl) return ub >= T::kBits ? 0 : T::wrap(ua << ub);
  if constexpr (Op == BinaryOp::Shr) {
    if (ub >= T::kBits) return T::kSigned && a < 0 ? -1 : 0;
    return T::kSigned ? a >> ub : static_cast<int64_t>(ua >> ub);
  }
  return 0;
}

/// Section 4.3: IEEE in the type; NaN wins in min and max; the remainder has the divisor's sign.
template <class T, BinaryOp Op>
typename T::Repr float_binary(typename T::Repr a, typename T::Repr b) {
  if constexpr (Op == BinaryOp::Add) return T::round(a + b);
  if constexpr (Op == BinaryOp::Sub) return T::round(a - b);
  if constexpr (Op == BinaryOp::Mul) return T::round(a * b);
  if constexpr (Op == BinaryOp::Div) return T::round(a / b);
  if constexpr (Op == BinaryOp::Mod) return T::round(a - b * std::floor(a / b));
  if constexpr (Op == BinaryOp::Min) return std::isnan(a) ? a : std::isnan(b) || b < a ? b : a;
  if constexpr (Op == BinaryOp::Max) return std::isnan(a) ? a : std::isnan(b) || a < b ? b : a;
  return a;
}

template <BinaryOp Op, class R>
int64_t float_compare(R a, R b) {
  if constexpr (Op == BinaryOp::Eq) return a == b;
  if constexpr (Op == BinaryOp::Ne) return a != b;
  if constexpr (Op == BinaryOp::Lt) return a < b;
  if constexpr (Op == BinaryOp::Le) return a <= b;
  if constexpr (Op == BinaryOp::Gt) return a > b;
  if constexpr (Op == BinaryOp::Ge) return a >= b;
  return 0;
}

/// Section 4.6: truncates toward zero, saturates, NaN gives 0.
template <class Native, class R>
int64_t saturate(R v) {
  using Limits = std::numeric_limits<Native>;
  if (std::isnan(v)) return 0;
  if (v <= static_cast<R>(Limits::min())) return static_cast<int64_t>(Limits::min());
  if (v >= static_cast<R>(Limits::max())) return static_cast<int64_t>(Limits::max());
  return static_cast<int64_t>(static_cast<Native>(v));
}

/// Section 4.6: the value of type From as a value of type To.
template <class To, class From>
typename To::Repr cast_value(typename From::Repr v) {
  if constexpr (std::is_same_v<To, BoolType>) {
    return v != 0;
  } else if constexpr (To::kFloat && From::kFloat) {
    return To::round(static_cast<typename To::Repr>(v));
  } else if constexpr (To::kFloat) {
    if constexpr (std::is_same_v<From, IntType<uint64_t>>)
      return To::round(static_cast<typename To::Repr>(static_cast<uint64_t>(v)));
    return To::round(static_cast<typename To::Repr>(v));
  } else if constexpr (From::kFloat) {
    return saturate<typename To::Stored>(v);
  } else {
    return To::wrap(static_cast<uint64_t>(v));
  }
}

/// Section 4.7: the stored bits of `v` read as To. requires: equal widths.
template <class To, class From>
typename To::Repr bitcast_value(typename From::Repr v) {
  if constexpr (sizeof(typename To::Stored) == sizeof(typename From::Stored)) {
    return To::read(std::bit_cast<typename To::Stored>(From::write(v)));
  } else {
    TW_CHECK(false, "bitcast between different widths");
  }
}

/// Section 4.9: evaluated in double; the caller rounds to the type once.
double float_math(MathFn fn, double a);
double float_math(MathFn fn, double a, double b);

/// Section 4.9 for integers.
template <class T>
int64_t int_math(MathFn fn, int64_t a) {
  const auto ua = static_cast<uint64_t>(a);
  if (fn == MathFn::Abs) return T::kSigned && a < 0 ? T::wrap(-ua) : a;
  if (fn == MathFn::Popcount) {
    const uint64_t mask = T::kBits == 64 ? ~uint64_t{0} : (uint64_t{1} << (T::kBits % 64)) - 1;
    return std::popcount(ua & mask);
  }
  return a;  // floor, ceil, round, trunc of an integer
}
template <class T>
int64_t int_math(MathFn fn, int64_t a, int64_t b) {
  if (fn == MathFn::Pow) {
    if (T::kSigned && b < 0) {  // the power rounded toward zero
      if (a == 0) throw DivisionByZero{};
      return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    }
    uint64_t result = 1, base = static_cast<uint64_t>(a);
    for (auto n = static_cast<uint64_t>(b); n != 0; n >>= 1, base *= base)
      if (n & 1) result *= base;
    return T::wrap(result);
  }
  if (b == 0) throw DivisionByZero{};
  const bool divide = fn == MathFn::TruncDiv;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  if (!T::kSigned) return T::wrap(divide ? ua / ub : ua % ub);
  if (b == -1) return divide ? T::wrap(-ua) : 0;
  return divide ? a / b : a % b;
}

}  // namespace tilewright::interp
