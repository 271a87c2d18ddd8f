#include "tilewright/ir/text_tables.h"

#include <fmt/format.h>

#include <limits>

namespace tilewright::text {
namespace {

constexpr std::string_view kReserved[] = {
    "func",    "for",     "in",      "block",   "alloc",   "if",       "else",    "call",
    "where",   "true",    "false",   "inf",     "nan",     "const",    "out",     "inout",
    "strides", "inf_f64", "nan_f64", "inf_f16", "nan_f16", "inf_bf16", "nan_bf16"};

}  // namespace

std::span<const std::string_view> reserved_words() { return kReserved; }

std::optional<Precedence> precedence(BinaryOp op) {
  switch (op) {
    case BinaryOp::Min:
    case BinaryOp::Max:
      return std::nullopt;
    case BinaryOp::Or:
      return kOr;
    case BinaryOp::And:
      return kAnd;
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le:
    case BinaryOp::Gt:
    case BinaryOp::Ge:
      return kComparison;
    case BinaryOp::BitOr:
      return kBitOr;
    case BinaryOp::BitXor:
      return kBitXor;
    case BinaryOp::BitAnd:
      return kBitAnd;
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      return kShift;
    case BinaryOp::Add:
    case BinaryOp::Sub:
      return kSum;
    case BinaryOp::Mul:
    case BinaryOp::Div:
    case BinaryOp::Mod:
      return kProduct;
  }
  return std::nullopt;
}

std::optional<BinaryOp> infix_operator(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(BinaryOp::Shr); ++i) {
    const auto op = static_cast<BinaryOp>(i);
    if (precedence(op) && symbol(op) == text) return op;
  }
  return std::nullopt;
}

std::string type_problem(UnaryOp op, DType operand) {
  if (op == UnaryOp::Not && operand != DType::Bool)
    return fmt::format("`!` needs bool, not {}", name(operand));
  if (op == UnaryOp::BitNot && !is_int(operand))
    return fmt::format("`~` needs an integer, not {}", name(operand));
  if (op == UnaryOp::Neg && operand == DType::Bool) return "`-` needs a number, not bool";
  return {};
}

std::string type_problem(BinaryOp op, DType a, DType b) {
  if (a != b)
    return fmt::format("operands of `{}` have types {} and {}", symbol(op), name(a), name(b));
  const bool logical = op == BinaryOp::And || op == BinaryOp::Or;
  if (logical && a != DType::Bool)
    return fmt::format("`{}` needs bool, not {}", symbol(op), name(a));
  if (op >= BinaryOp::BitAnd && !is_int(a))
    return fmt::format("`{}` needs integers, not {}", symbol(op), name(a));
  if (op <= BinaryOp::Max && a == DType::Bool)
    return fmt::format("`{}` needs numbers, not bool", symbol(op));
  return {};
}

std::string type_problem(MathFn fn, DType operand) {
  const bool integer_only = fn == MathFn::Popcount;
  const bool any =
      fn == MathFn::Abs || fn == MathFn::Pow || fn == MathFn::TruncDiv || fn == MathFn::TruncMod;
  if (is_float(operand) ? !integer_only : is_int(operand) && (integer_only || any)) return {};
  return fmt::format("`{}` needs {}, not {}", name(fn),
                     integer_only ? "an integer"
                     : any        ? "a number"
                                  : "a floating-point number",
                     name(operand));
}

std::string bitcast_problem(DType from, DType to) {
  if (from == DType::Bool || to == DType::Bool) return "`bitcast` does not apply to bool";
  if (bit_width(from) != bit_width(to))
    return fmt::format("`bitcast` from {} to {} changes the width", name(from), name(to));
  return {};
}

bool fits(int64_t value, DType dtype) {
  if (dtype == DType::Bool) return value == 0 || value == 1;
  const int bits = bit_width(dtype);
  if (bits == 64) return true;
  if (is_unsigned_int(dtype)) return value >= 0 && value < int64_t{1} << bits;
  return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1);
}

uint64_t plain_nan_bits(DType dtype) {
  if (dtype == DType::F16) return 0x7e00;
  if (dtype == DType::BF16) return 0x7fc0;
  if (dtype == DType::F32) return 0x7fc00000;
  return 0x7ff8000000000000;
}

std::string float_digits(double value, DType dtype) {
  // Values of the 16-bit types are exact in f32, so f32's digits identify them.
  std::string digits =
      dtype == DType::F64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

}  // namespace tilewright::text
