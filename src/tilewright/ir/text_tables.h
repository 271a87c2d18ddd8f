// What the printer and the parser must agree on. Private to ir.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tilewright/ir/stmt.h"

namespace tilewright::text {

/// Words that a name can be only in backquotes.
std::span<const std::string_view> reserved_words();

/// How tightly an operator binds: higher is tighter. Comparisons do not chain.
enum Precedence : int {
  kOr = 1,
  kAnd,
  kComparison,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShift,
  kSum,
  kProduct,
  kUnary
};
/// Absent for min and max, which are written as calls.
std::optional<Precedence> precedence(BinaryOp op);
/// The operator written as `symbol`, if it is an infix one.
std::optional<BinaryOp> infix_operator(std::string_view symbol);

/// An operator or function that does not fit its operand type, in words; empty if it fits.
std::string type_problem(UnaryOp op, DType operand);
std::string type_problem(BinaryOp op, DType a, DType b);
std::string type_problem(MathFn fn, DType operand);
std::string bitcast_problem(DType from, DType to);

/// True if `value` (u64: as bits) is a value of the integer type.
bool fits(int64_t value, DType dtype);

/// Raw bits of the NaN that is written as plain `nan`, as `dtype` stores it.
uint64_t plain_nan_bits(DType dtype);

/// Digits of a finite value that read back as the same value of `dtype`; always with a point or an
/// exponent.
std::string float_digits(double value, DType dtype);

}  // namespace tilewright::text
