#include "tilewright/arith/test_util.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::arith::testing {
namespace {

using Value = std::optional<int64_t>;

int64_t reduced(__int128 value, DType dtype) {
  if (dtype == DType::Bool) return value != 0;
  const int bits = bit_width(dtype);
  unsigned __int128 u = static_cast<unsigned __int128>(value);
  if (bits < 64) {
    u &= (static_cast<unsigned __int128>(1) << bits) - 1;
    const bool negative = is_signed_int(dtype) && (u >> (bits - 1) & 1);
    return static_cast<int64_t>(u) - (negative ? int64_t{1} << bits : 0);
  }
  return static_cast<int64_t>(static_cast<uint64_t>(u));
}

// Rounds down by searching for the quotient's neighbour: no formula shared with the library.
__int128 floor_quotient(__int128 a, __int128 b) {
  __int128 q = a / b;
  while (q * b > a && b > 0) --q;
  while (q * b < a && b < 0) --q;
  return q;
}

Value of_binary(const Binary& x, const Values& values, DType dtype) {
  const Value a = evaluate(x.a, values);
  if (!a) return a;
  if (x.op == BinaryOp::And) return *a ? evaluate(x.b, values) : Value(0);
  if (x.op == BinaryOp::Or) return *a ? Value(1) : evaluate(x.b, values);
  const Value b = evaluate(x.b, values);
  if (!b) return b;
  const __int128 p = *a, q = *b;
  const int bits = bit_width(dtype);
  switch (x.op) {
    case BinaryOp::Add:
      return reduced(p + q, dtype);
    case BinaryOp::Sub:
      return reduced(p - q, dtype);
    case BinaryOp::Mul:
      return reduced(p * q, dtype);
    case BinaryOp::Div:
      if (q == 0) return std::nullopt;
      return reduced(floor_quotient(p, q), dtype);
    case BinaryOp::Mod:
      if (q == 0) return std::nullopt;
      return reduced(p - floor_quotient(p, q) * q, dtype);
    case BinaryOp::Min:
      return p < q ? *a : *b;
    case BinaryOp::Max:
      return p > q ? *a : *b;
    case BinaryOp::Eq:
      return p == q;
    case BinaryOp::Ne:
      return p != q;
    case BinaryOp::Lt:
      return p < q;
    case BinaryOp::Le:
      return p <= q;
    case BinaryOp::Gt:
      return p > q;
    case BinaryOp::Ge:
      return p >= q;
    case BinaryOp::BitAnd:
      return *a & *b;
    case BinaryOp::BitOr:
      return *a | *b;
    case BinaryOp::BitXor:
      return *a ^ *b;
    case BinaryOp::Shl:
      if (q < 0) return std::nullopt;
      return q >= bits ? 0 : reduced(p << static_cast<int>(q), dtype);
    case BinaryOp::Shr:
      if (q < 0) return std::nullopt;
      return q >= bits ? (p < 0 ? -1 : 0) : static_cast<int64_t>(p >> static_cast<int>(q));
    default:
      return std::nullopt;
  }
}

}  // namespace

Value evaluate(const Expr& e, const Values& values) {
  const DType dtype = e.dtype();
  return match(
      e, [&](const IntImm& x) { return Value(x.value); },
      [&](const VarRef& x) { return Value(values.at(x.var)); },
      [&](const Unary& x) -> Value {
        const Value a = evaluate(x.a, values);
        if (!a) return a;
        if (x.op == UnaryOp::Not) return *a == 0;
        return reduced(x.op == UnaryOp::Neg ? -static_cast<__int128>(*a) : ~*a, dtype);
      },
      [&](const Binary& x) { return of_binary(x, values, dtype); },
      [&](const Select& x) -> Value {
        const Value c = evaluate(x.condition, values);
        return !c ? c : evaluate(*c ? x.on_true : x.on_false, values);
      },
      [&](const Cast& x) -> Value {
        const Value a = evaluate(x.a, values);
        return a ? Value(reduced(*a, dtype)) : a;
      },
      [&](const auto&) { return Value(); });
}

void for_all(const std::vector<Ranged>& vars, const std::function<bool(const Values&)>& f) {
  Values values;
  for (const Ranged& r : vars) {
    if (r.lo > r.hi) return;
    values[r.var] = r.lo;
  }
  while (true) {
    if (!f(values)) return;
    size_t k = 0;
    for (; k < vars.size(); ++k) {
      int64_t& v = values[vars[k].var];
      if (v < vars[k].hi) {
        ++v;
        break;
      }
      v = vars[k].lo;
    }
    if (k == vars.size()) return;
  }
}

Bounds bounds_of(const std::vector<Ranged>& vars) {
  Bounds b;
  for (const Ranged& r : vars) {
    const DType dtype = r.var.dtype();
    if (r.lo == 0)
      b.bind(r.var, int_imm(r.hi + 1, dtype));
    else
      b.bind_range(r.var, int_imm(r.lo, dtype), int_imm(r.hi, dtype));
  }
  return b;
}

Expr random_int(Rng& rng, const std::vector<Ranged>& vars, DType dtype, int depth) {
  auto sub = [&] { return random_int(rng, vars, dtype, depth - 1); };
  if (depth <= 0 || rng.chance(0.12)) {
    if (rng.chance(0.3)) return int_imm(rng.between(is_unsigned_int(dtype) ? 0 : -9, 17), dtype);
    return ref(vars[static_cast<size_t>(rng.below(static_cast<int64_t>(vars.size())))].var);
  }
  static constexpr int64_t kDivisors[] = {2, 3, 4, 5, 6, 8, 12, 16};
  auto divisor = [&] {
    int64_t d = kDivisors[rng.below(8)];
    if (!is_unsigned_int(dtype) && rng.chance(0.1)) d = -d;
    return int_imm(d, dtype);
  };
  switch (rng.below(16)) {
    case 0:
    case 1:
    case 2:
      return binary(BinaryOp::Add, sub(), sub());
    case 3:
      return binary(BinaryOp::Sub, sub(), sub());
    case 4:
    case 5:
    case 6:
      return binary(BinaryOp::Mul, sub(), divisor());
    case 7:
    case 8:
      return binary(BinaryOp::Div, sub(), divisor());
    case 9:
    case 10:
      return binary(BinaryOp::Mod, sub(), divisor());
    case 11:
      return binary(rng.chance(0.5) ? BinaryOp::Min : BinaryOp::Max, sub(), sub());
    case 12:
      return select(random_bool(rng, vars, dtype, depth - 1), sub(), sub());
    case 13: {
      static constexpr BinaryOp kOps[] = {BinaryOp::BitAnd, BinaryOp::BitOr, BinaryOp::BitXor,
                                          BinaryOp::Mul,    BinaryOp::Div,   BinaryOp::Mod};
      return binary(kOps[rng.below(6)], sub(), sub());
    }
    case 14:
      if (rng.chance(0.5)) {
        const Expr amount = int_imm(rng.below(5), dtype);
        return binary(rng.chance(0.5) ? BinaryOp::Shl : BinaryOp::Shr, sub(), amount);
      }
      return unary(rng.chance(0.5) ? UnaryOp::Neg : UnaryOp::BitNot, sub());
    default: {
      static constexpr DType kVia[] = {DType::I8, DType::U8, DType::I32, DType::I64, DType::U16};
      return cast(dtype, cast(kVia[rng.below(5)], sub()));
    }
  }
}

Expr random_bool(Rng& rng, const std::vector<Ranged>& vars, DType dtype, int depth) {
  auto sub = [&] { return random_bool(rng, vars, dtype, depth - 1); };
  if (depth > 1 && rng.chance(0.3)) {
    if (rng.chance(0.15)) return logical_not(sub());
    return binary(rng.chance(0.5) ? BinaryOp::And : BinaryOp::Or, sub(), sub());
  }
  static constexpr BinaryOp kOps[] = {BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt,
                                      BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge};
  return binary(kOps[rng.below(6)], random_int(rng, vars, dtype, depth - 1),
                random_int(rng, vars, dtype, depth - 1));
}

}  // namespace tilewright::arith::testing
