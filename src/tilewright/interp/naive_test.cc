// Random programs against a second interpreter: maps for names, whole numbers and doubles for
// values, nothing compiled. It shares no code with the one under test.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "tilewright/interp/interp.h"
#include "tilewright/interp/testing/exact_int.h"
#include "tilewright/ir/testing/random_func.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::interp {
namespace {

using testing::meaning;
using testing::range_of;
using testing::Wide;
using testing::wrapped;

struct Value {
  Wide i = 0;
  double f = 0;
};

double rounded(double v, DType d) {
  if (d == DType::F64) return v;
  const auto single = static_cast<float>(v);
  if (d == DType::F16) return f16_to_f32(f32_to_f16(single));
  if (d == DType::BF16) return bf16_to_f32(f32_to_bf16(single));
  return single;
}

class Naive {
 public:
  std::map<std::string, Array> run(const Func& f, const Arguments& args) {
    for (const Scalar& s : f.scalars) vars_[s.var] = args.scalars.at(s.var.name());
    for (const Param& p : f.params) {
      const std::string& key = p.buffer.name();
      if (p.mode == ParamMode::Out) {
        memory_[p.buffer] = {Array(p.buffer.dtype(), shape(p.buffer)), {}, {}};
      } else {
        memory_[p.buffer] = {args.arrays.contains(key) ? args.arrays.at(key) : *p.values, {}, {}};
      }
      whole(memory_[p.buffer]);
    }
    stmt(f.body);
    std::map<std::string, Array> outputs;
    for (const Param& p : f.params)
      if (p.mode == ParamMode::Out) outputs[p.buffer.name()] = memory_[p.buffer].array;
    return outputs;
  }

 private:
  /// A rectangle of an array: axes of the array, where it begins, which of them it keeps.
  struct Memory {
    Array array;
    std::vector<int64_t> begin;
    std::vector<size_t> axes;
  };
  static void whole(Memory& m) {
    m.begin.assign(m.array.shape().size(), 0);
    for (size_t k = 0; k < m.begin.size(); ++k) m.axes.push_back(k);
  }
  Shape shape(const Buffer& b) {
    Shape dims;
    for (const Expr& e : b.shape()) dims.push_back(integer(e));
    return dims;
  }
  int64_t integer(const Expr& e) { return static_cast<int64_t>(eval(e).i); }

  int64_t flat(const Memory& m, const std::vector<Expr>& indices) {
    std::vector<int64_t> at = m.begin;
    for (size_t k = 0; k < indices.size(); ++k) at[m.axes[k]] += integer(indices[k]);
    int64_t offset = 0;
    for (size_t k = 0; k < at.size(); ++k) offset = offset * m.array.shape()[k] + at[k];
    return offset;
  }
  Value get(const Array& a, int64_t i) {
    if (is_float(a.dtype())) return {0, a.get(i)};
    const int64_t v = a.get_int(i);
    return {a.dtype() == DType::U64 ? static_cast<Wide>(static_cast<uint64_t>(v)) : v, 0};
  }

  void stmt(const Stmt& s) {
    match(
        s,
        [&](const For& x) {
          const int64_t n = integer(x.extent);
          for (int64_t i = 0; i < n; ++i) vars_[x.var] = i, stmt(x.body);
        },
        [&](const Block& x) {
          if (x.guard && eval(x.guard).i == 0) return;
          std::map<Var, int64_t> values;
          for (const Iter& iter : x.iters) values[iter.var] = integer(iter.binding);
          for (const auto& [var, value] : values) vars_[var] = value;
          stmt(x.body);
        },
        [&](const Store& x) { store(x); },
        [&](const Alloc& x) {
          memory_[x.buffer] = {Array(x.buffer.dtype(), shape(x.buffer)), {}, {}};
          whole(memory_[x.buffer]);
        },
        [&](const If& x) {
          if (eval(x.condition).i != 0) {
            stmt(x.then_body);
          } else if (x.else_body) {
            stmt(x.else_body);
          }
        },
        [&](const Seq& x) {
          for (const Stmt& child : x.stmts) stmt(child);
        },
        [&](const Call& x) { call(x); });
  }

  void call(const Call& x) {
    const Func& f = *x.callee;
    for (size_t i = 0; i < f.scalars.size(); ++i)
      vars_[f.scalars[i].var] = integer(std::get<Expr>(x.args[i]));
    for (size_t i = 0; i < f.params.size(); ++i) {
      const Region& r = std::get<Region>(x.args[f.scalars.size() + i]);
      Memory view = memory_.at(r.buffer);
      const std::vector<size_t> axes = std::exchange(view.axes, {});
      for (size_t k = 0; k < r.dims.size(); ++k) {
        view.begin[axes[k]] += integer(r.dims[k].first);
        // The generator's regions keep the last axis only.
        if (k + 1 == r.dims.size()) view.axes.push_back(axes[k]);
      }
      memory_[f.params[i].buffer] = view;
    }
    stmt(f.body);
  }

  void store(const Store& x) {
    Memory& m = memory_.at(x.buffer);
    const DType d = x.buffer.dtype();
    const int64_t at = flat(m, x.indices);
    Value v = eval(x.value);
    if (x.combine != Combine::Set) {
      const BinaryOp op = x.combine == Combine::Add   ? BinaryOp::Add
                          : x.combine == Combine::Mul ? BinaryOp::Mul
                          : x.combine == Combine::Max ? BinaryOp::Max
                                                      : BinaryOp::Min;
      v = binary(op, get(m.array, at), v, d);
    }
    if (is_float(d)) {
      m.array.set(at, v.f);
    } else {
      m.array.set_int(at, static_cast<int64_t>(v.i));
    }
  }

  static Value binary(BinaryOp op, Value a, Value b, DType d) {
    if (!is_float(d)) return {meaning(op, a.i, b.i, d), 0};
    // f32 operations are exact in double up to the one rounding for + - * /.
    const double x = a.f, y = b.f;
    const auto narrow = [&](double v) {
      return d == DType::F64 ? v : static_cast<double>(static_cast<float>(v));
    };
    const bool nan = std::isnan(x) || std::isnan(y);
    switch (op) {
      case BinaryOp::Add:
        return {0, rounded(x + y, d)};
      case BinaryOp::Sub:
        return {0, rounded(x - y, d)};
      case BinaryOp::Mul:
        return {0, rounded(x * y, d)};
      case BinaryOp::Div:
        return {0, rounded(x / y, d)};
      case BinaryOp::Mod:
        return {0, rounded(narrow(x - narrow(y * std::floor(narrow(x / y)))), d)};
      case BinaryOp::Min:
        return {0, nan ? x + y : y < x ? y : x};
      case BinaryOp::Max:
        return {0, nan ? x + y : x < y ? y : x};
      default:
        break;
    }
    const bool answers[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
    return {answers[static_cast<int>(op) - static_cast<int>(BinaryOp::Eq)], 0};
  }

  Value eval(const Expr& e) {
    const DType d = e.dtype();
    return match(
        e, [&](const IntImm& x) -> Value { return {wrapped(x.value, d), 0}; },
        [&](const FloatImm& x) -> Value { return {0, x.value}; },
        [&](const VarRef& x) -> Value { return {vars_.at(x.var), 0}; },
        [&](const Unary& x) -> Value {
          const Value a = eval(x.a);
          if (x.op == UnaryOp::Not) return {1 - a.i, 0};
          if (x.op == UnaryOp::BitNot) return {wrapped(-1 - a.i, d), 0};
          return {is_float(d) ? 0 : wrapped(-a.i, d), -a.f};
        },
        [&](const Binary& x) -> Value {
          const Value a = eval(x.a);
          if (x.op == BinaryOp::And) return a.i == 0 ? a : eval(x.b);
          if (x.op == BinaryOp::Or) return a.i != 0 ? a : eval(x.b);
          return binary(x.op, a, eval(x.b), x.a.dtype());
        },
        [&](const Select& x) {
          return eval(x.condition).i != 0 ? eval(x.on_true) : eval(x.on_false);
        },
        [&](const Cast& x) {
          return x.bits ? bits(eval(x.a), x.a.dtype(), d) : cast(eval(x.a), x.a.dtype(), d);
        },
        [&](const Load& x) {
          const Memory& m = memory_.at(x.buffer);
          return get(m.array, flat(m, x.indices));
        },
        [&](const MathCall& x) { return function(x, d); });
  }

  static Value cast(Value v, DType from, DType to) {
    if (to == DType::Bool) return {is_float(from) ? v.f != 0 : v.i != 0, 0};
    if (is_float(to)) {
      if (is_float(from)) return {0, rounded(v.f, to)};
      return {0,
              to == DType::F64 ? static_cast<double>(v.i) : rounded(static_cast<float>(v.i), to)};
    }
    if (!is_float(from)) return {wrapped(v.i, to), 0};
    if (std::isnan(v.f)) return {0, 0};
    const auto r = range_of(to);
    if (v.f >= static_cast<double>(r.hi)) return {r.hi, 0};
    if (v.f <= static_cast<double>(r.lo)) return {r.lo, 0};
    return {static_cast<Wide>(std::trunc(v.f)), 0};
  }

  /// The generator makes 32-bit casts only.
  static Value bits(Value v, DType from, DType to) {
    const uint32_t raw = from == DType::F32 ? std::bit_cast<uint32_t>(static_cast<float>(v.f))
                                            : static_cast<uint32_t>(v.i);
    if (to == DType::F32) return {0, std::bit_cast<float>(raw)};
    return {wrapped(raw, to), 0};
  }

  Value function(const MathCall& x, DType d) {
    const Value a = eval(x.args[0]), b = x.args.size() > 1 ? eval(x.args[1]) : Value();
    const double f = a.f;
    switch (x.fn) {
      case MathFn::Abs:
        return {wrapped(a.i < 0 ? -a.i : a.i, d), std::fabs(f)};
      case MathFn::Popcount: {
        Wide count = 0;
        for (int bit = 0; bit < bit_width(d); ++bit) count += (a.i >> bit) & 1;
        return {count, 0};
      }
      case MathFn::Pow: {
        Wide product = 1;
        for (Wide n = 0; n < b.i; ++n) product = meaning(BinaryOp::Mul, product, a.i, d);
        return {product, 0};
      }
      case MathFn::TruncDiv:
        return {wrapped(a.i / b.i, d), 0};
      case MathFn::TruncMod:
        if (is_float(d)) return {0, rounded(std::fmod(f, b.f), d)};
        return {a.i % b.i, 0};
      case MathFn::IsNan:
        return {std::isnan(f), 0};
      case MathFn::IsInf:
        return {std::isinf(f), 0};
      default:
        break;
    }
    const std::map<MathFn, double (*)(double)> table = {
        {MathFn::Exp, [](double v) { return std::exp(v); }},
        {MathFn::Sqrt, [](double v) { return std::sqrt(v); }},
        {MathFn::Tanh, [](double v) { return std::tanh(v); }},
        {MathFn::Floor, [](double v) { return std::floor(v); }},
        {MathFn::Ceil, [](double v) { return std::ceil(v); }},
        {MathFn::Round, [](double v) { return std::copysign(v - std::remainder(v, 1.0), v); }},
        {MathFn::Trunc, [](double v) { return std::trunc(v); }},
        {MathFn::Sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }},
        {MathFn::Erf, [](double v) { return std::erf(v); }},
        {MathFn::Sin, [](double v) { return std::sin(v); }}};
    if (x.fn == MathFn::Round && std::isinf(f)) return {0, f};
    return {0, rounded(table.at(x.fn)(f), d)};
  }

  std::map<Var, int64_t> vars_;
  std::map<Buffer, Memory> memory_;
};

/// Equal values; NaNs of any payload are the same, and so are zeros of either sign.
bool agree(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (is_float(a.dtype()) && std::isnan(a.get(i)) && std::isnan(b.get(i))) continue;
    if (is_float(a.dtype()) ? a.get(i) != b.get(i) : a.get_int(i) != b.get_int(i)) return false;
  }
  return true;
}

TEST(NaiveSlow, RandomProgramsMeanTheSame) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed);
    const Func f = tilewright::testing::random_func(rng);
    Arguments args;
    for (const Scalar& s : f.scalars) args.scalars[s.var.name()] = rng.between(s.lo, s.hi);
    for (const Param& p : f.params) {
      if (p.values || p.mode == ParamMode::Out) continue;
      Shape shape;
      for (const Expr& extent : p.buffer.shape()) shape.push_back(*as_int(extent));
      Array a(p.buffer.dtype(), shape);
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, rng.normal() * 5);
      args.arrays[p.buffer.name()] = a;
    }
    const auto out = run(f, args);
    ASSERT_TRUE(out) << seed << "\n" << to_string(out.error()) << "\n" << print(f);
    const auto expected = Naive().run(f, args);
    for (const auto& [param, array] : expected) {
      const Array& actual = out->outputs.at(param);
      for (int64_t i = 0; i < array.size() && !agree(array, actual); ++i)
        if (array.get(i) != actual.get(i))
          std::printf("%s[%ld] %g %g\n", param.c_str(), static_cast<long>(i), array.get(i),
                      actual.get(i));
      ASSERT_TRUE(agree(array, actual)) << "seed " << seed << ", " << param << "\n" << print(f);
    }
  }
}

}  // namespace
}  // namespace tilewright::interp
