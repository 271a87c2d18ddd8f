// The pass `expand_math`: f32 exp, log, tanh, sigmoid, erf and rsqrt as arithmetic, which
// vectorises; a call of a library function would not.
//
//   exp(x)  =>  2^n * p(r)   with x = n * ln 2 + r, |r| <= ln 2 / 2, p a polynomial
//
// Powers of two are made and taken apart as bits (`bitcast`). f16 and bf16 go through f32. Since an
// expansion mentions its argument dozens of times, the argument is first stored in a scalar of its
// own, except where evaluation is lazy (the sides of a select).
#include <cmath>
#include <limits>
#include <map>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

// ln 2 in two parts: a multiple of an exponent by the first is exact in f32.
constexpr double kLn2Hi = 355.0 / 512.0;
constexpr double kLn2Lo = 0.69314718055994530942 - kLn2Hi;
constexpr double kLog2E = 1.44269504088896340736;
// Adding 1.5 * 2^23 to a small f32 leaves its rounded integer in the low bits.
constexpr double kRounder = 12582912.0;
constexpr int64_t kRounderBits = 0x4b400000;

Expr f(double value) { return float_imm(value); }
Expr i(int64_t value) { return int_imm(value, DType::I32); }
Expr bits(const Expr& x) { return bitcast(DType::I32, x); }
Expr from_bits(const Expr& x) { return bitcast(DType::F32, x); }
Expr shift_left(const Expr& x, int64_t n) { return binary(BinaryOp::Shl, x, i(n)); }
Expr shift_right(const Expr& x, int64_t n) { return binary(BinaryOp::Shr, x, i(n)); }

/// c[0] + x * (c[1] + x * ...).
Expr horner(const Expr& x, const std::vector<double>& c) {
  Expr sum = f(c.back());
  for (size_t k = c.size() - 1; k-- > 0;) sum = sum * x + f(c[k]);
  return sum;
}

/// 2^n for an integer n in the range of normal numbers.
Expr power_of_two(const Expr& n) { return from_bits(shift_left(n + i(127), 23)); }

/// x = n * ln 2 + r with |r| <= ln 2 / 2; n as integer.
struct Reduced {
  Expr n, r;
};
Reduced reduce(const Expr& x) {
  const Expr shifted = x * f(kLog2E) + f(kRounder);
  const Expr n = shifted - f(kRounder);
  return {bits(shifted) - i(kRounderBits), (x - n * f(kLn2Hi)) - n * f(kLn2Lo)};
}

/// e^r - 1 - r for |r| <= ln 2 / 2; error below 4e-9 of e^r. This polynomial and those below were
/// fitted by weighted least squares, weights moved until the largest errors were equal.
Expr exp_rest(const Expr& r) {
  return r * r *
         horner(r, {0.5, 0.16666512191295624, 0.0416661873459816, 0.008369598537683487,
                    0.0013951717410236597});
}

Expr exp_of(const Expr& x) {
  // Beyond these limits the result is 0 or infinity anyway.
  const auto [n, r] = reduce(min(max(x, f(-104.0)), f(89.0)));
  const Expr p = exp_rest(r) + r + f(1.0);
  // Two factors, so that results near the ends of the range neither overflow nor flush early.
  const Expr half = shift_right(n, 1);
  return p * power_of_two(half) * power_of_two(n - half);
}

Expr log_of(const Expr& x) {
  constexpr int64_t kSqrtHalf = 0x3f3504f3;  // bits of sqrt(0.5): mantissas end up in [0.7, 1.42)
  const Expr tiny = x < f(std::numeric_limits<float>::min());
  const Expr scaled = select(tiny, x * f(0x1p23), x);
  const Expr offset = bits(scaled) - i(kSqrtHalf);
  const Expr e = cast(DType::F32, shift_right(offset, 23)) - select(tiny, f(23.0), f(0.0));
  const Expr mantissa = binary(BinaryOp::BitAnd, offset, i(0x7fffff)) + i(kSqrtHalf);
  const Expr m = from_bits(mantissa) - f(1.0);
  // log(1 + m) = m - s * (m - s^2 * (2/3 + ...)) with s = m / (2 + m).
  const Expr s = m / (m + f(2.0)), z = s * s;
  const Expr series = z * horner(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11});
  const Expr value = e * f(kLn2Hi) + (m - (s * (m - series) - e * f(kLn2Lo)));
  const double inf = std::numeric_limits<double>::infinity();
  return select(x > f(0.0), select(x < f(inf), value, x),
                select(eq(x, f(0.0)), f(-inf), f(std::numeric_limits<double>::quiet_NaN())));
}

/// x * p(x^2) / q(x^2) for an odd function that is 1 from `end` on.
Expr odd_ratio(const Expr& x, double end, const std::vector<double>& p,
               const std::vector<double>& q) {
  const Expr inside = min(max(x, f(-end)), f(end)), z = inside * inside;
  return min(max(inside * horner(z, p) / horner(z, q), f(-1.0)), f(1.0));
}

/// The ratios were fitted like the polynomials (relative errors 2e-12 and 2e-9); what arithmetic in
/// f32 adds is five units in the last place.
Expr tanh_of(const Expr& x) {
  return odd_ratio(
      x, 9.1,
      {0.9999999999982008, 0.14287018873208593, 0.004682018888617022, 4.943409222182146e-05,
       1.6177510434626097e-07, 8.97906458423728e-11, -2.001502885684167e-14},
      {1.0, 0.4762035220436614, 0.030083192946720176, 0.0005516160657555362, 3.325507206457169e-06,
       5.234795719567423e-09});
}

Expr erf_of(const Expr& x) {
  return odd_ratio(
      x, 4.0,
      {1.1283791693755965, 0.18520334493559515, 0.05431691445556688, 0.0038496150187302828,
       0.00037960833565401394, 4.684759638583932e-06, -1.320214471761423e-08},
      {1.0, 0.4974656047873183, 0.11395845534667184, 0.01546209474228414, 0.0013075698940805147,
       6.311041338552684e-05});
}

bool is_two(const Expr& e) {
  const auto* number = e.as<FloatImm>();
  return number != nullptr && number->value == 2.0;
}

/// The expansion over f32, or an empty handle where the function stays a call.
Expr expand(MathFn fn, const Expr& x) {
  switch (fn) {
    case MathFn::Exp:
      return exp_of(x);
    case MathFn::Log:
      return log_of(x);
    case MathFn::Tanh:
      return tanh_of(x);
    case MathFn::Sigmoid:
      return f(1.0) / (exp_of(-x) + f(1.0));
    case MathFn::Erf:
      return erf_of(x);
    case MathFn::Rsqrt:
      return f(1.0) / math(MathFn::Sqrt, {x});
    default:
      return Expr();
  }
}

/// Expands the functions in one value. Arguments are staged in scalars of their own, because an
/// expansion mentions its argument dozens of times; not where evaluation is lazy, and not inside
/// blocks, whose body holds stores only.
class Expander {
 public:
  Expander(Namer& namer, bool may_stage) : namer_(namer), may_stage_(may_stage) {}

  Expr run(const Expr& e, bool lazy) {
    const auto key = std::make_pair(e.get(), lazy);
    if (const auto it = done_.find(key); it != done_.end()) return it->second;
    return done_[key] = visit(e, lazy);
  }

  /// Allocations and stores to run before the value.
  std::vector<Stmt> take_staged() { return std::move(staged_); }

 private:
  Expr visit(const Expr& e, bool lazy) {
    return match(
        e, [&](const Unary& x) { return unary(x.op, run(x.a, lazy)); },
        [&](const Binary& x) {
          const bool short_cut = x.op == BinaryOp::And || x.op == BinaryOp::Or;
          return binary(x.op, run(x.a, lazy), run(x.b, lazy || short_cut));
        },
        [&](const Select& x) {
          return select(run(x.condition, lazy), run(x.on_true, true), run(x.on_false, true));
        },
        [&](const Cast& x) {
          const Expr a = run(x.a, lazy);
          return x.bits ? bitcast(e.dtype(), a) : cast(e.dtype(), a);
        },
        [&](const MathCall& x) { return call(e, x, lazy); }, [&](const auto&) { return e; });
  }

  Expr call(const Expr& e, const MathCall& x, bool lazy) {
    std::vector<Expr> args;
    for (const Expr& arg : x.args) args.push_back(run(arg, lazy));
    const DType dtype = e.dtype();
    const bool narrow = dtype == DType::F16 || dtype == DType::BF16;
    Expr out;
    if (dtype == DType::F32 || narrow) {
      if (x.fn == MathFn::Pow && is_two(args[1])) {
        const Expr base = stage(cast(DType::F32, args[0]), lazy);
        return cast(dtype, base * base);
      }
      const Expr probe = expand(x.fn, f(0.0));
      if (probe) out = expand(x.fn, stage(cast(DType::F32, args[0]), lazy));
    }
    return out ? cast(dtype, out) : math(x.fn, args);
  }

  Expr stage(const Expr& value, bool lazy) {
    const bool small = value.as<VarRef>() || value.as<FloatImm>();
    if (lazy || !may_stage_ || small) return value;
    const Buffer buffer(namer_.fresh("math", ""), DType::F32, {}, "local");
    staged_.push_back(make(Alloc{buffer, {}}));
    staged_.push_back(make(Store{buffer, {}, value, Combine::Set}));
    return load(buffer, {});
  }

  Namer& namer_;
  bool may_stage_;
  std::map<std::pair<const ExprNode*, bool>, Expr> done_;
  std::vector<Stmt> staged_;
};

bool calls_function(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found |= x.as<MathCall>() != nullptr; });
  return found;
}

Stmt expand_stmt(const Stmt& s, Namer& namer, bool in_block) {
  if (const auto* store = s.as<Store>()) {
    if (!calls_function(store->value)) return s;
    Expander expander(namer, !in_block);
    Store out = *store;
    out.value = expander.run(store->value, false);
    std::vector<Stmt> stmts = expander.take_staged();
    stmts.push_back(make(std::move(out)));
    return seq(std::move(stmts));
  }
  if (const auto* loop = s.as<For>()) {
    For out = *loop;
    out.body = expand_stmt(loop->body, namer, in_block);
    return make(std::move(out));
  }
  if (const auto* branch = s.as<If>()) {
    If out = *branch;
    out.then_body = expand_stmt(branch->then_body, namer, in_block);
    if (branch->else_body) out.else_body = expand_stmt(branch->else_body, namer, in_block);
    return make(std::move(out));
  }
  if (const auto* block = s.as<Block>()) {
    Block out = *block;
    out.body = expand_stmt(block->body, namer, true);
    return make(std::move(out));
  }
  const auto* list = s.as<Seq>();
  if (list == nullptr) return s;
  std::vector<Stmt> stmts;
  for (const Stmt& child : list->stmts) stmts.push_back(expand_stmt(child, namer, in_block));
  return seq(std::move(stmts));
}

}  // namespace

Result<Func> expand_math(const Func& func) {
  Func out = func;
  Namer namer(func);
  out.body = expand_stmt(func.body, namer, false);
  return out;
}

}  // namespace tilewright::lower
