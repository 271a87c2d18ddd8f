#include "tilewright/interp/compile_expr.h"

#include <fmt/format.h>

#include "tilewright/interp/checker.h"
#include "tilewright/interp/scalar.h"

namespace tilewright::interp {
namespace {

template <class R>
struct ConstantEval final : Eval<R> {
  explicit ConstantEval(R v) : value(v) {}
  R get(Machine&) const override { return value; }
  R value;
};

struct VarEval final : Eval<int64_t> {
  explicit VarEval(int s) : slot(s) {}
  int64_t get(Machine& m) const override { return m.vars[slot]; }
  int slot;
};

struct LinearEval final : Eval<int64_t> {
  explicit LinearEval(Linear l) : sum(std::move(l)) {}
  int64_t get(Machine& m) const override { return sum.get(m); }
  Linear sum;
};

template <class R, class A, class F>
struct UnaryEval final : Eval<R> {
  UnaryEval(EvalPtr<A> operand, F function) : a(std::move(operand)), f(std::move(function)) {}
  R get(Machine& m) const override { return f(a->get(m)); }
  EvalPtr<A> a;
  F f;
};

template <class R, class A, class F>
struct BinaryEval final : Eval<R> {
  BinaryEval(EvalPtr<A> left, EvalPtr<A> right, F function)
      : a(std::move(left)), b(std::move(right)), f(std::move(function)) {}
  R get(Machine& m) const override {
    const A x = a->get(m);
    return f(x, b->get(m));
  }
  EvalPtr<A> a, b;
  F f;
};

/// Section 4.4: the right side runs only if the left does not decide.
struct LogicalEval final : Eval<int64_t> {
  LogicalEval(EvalPtr<int64_t> left, EvalPtr<int64_t> right, bool is_or)
      : a(std::move(left)), b(std::move(right)), decisive(is_or) {}
  int64_t get(Machine& m) const override {
    const int64_t x = a->get(m);
    return x == decisive ? x : b->get(m);
  }
  EvalPtr<int64_t> a, b;
  int64_t decisive;
};

/// Section 4.5: only the chosen side runs.
template <class R>
struct SelectEval final : Eval<R> {
  SelectEval(EvalPtr<int64_t> c, EvalPtr<R> yes, EvalPtr<R> no)
      : condition(std::move(c)), on_true(std::move(yes)), on_false(std::move(no)) {}
  R get(Machine& m) const override {
    return condition->get(m) != 0 ? on_true->get(m) : on_false->get(m);
  }
  EvalPtr<int64_t> condition;
  EvalPtr<R> on_true, on_false;
};

/// Section 4.8.
template <class T>
struct LoadEval final : Eval<typename T::Repr> {
  explicit LoadEval(Element a) : access(std::move(a)) {}
  typename T::Repr get(Machine& m) const override {
    const int64_t offset = access.offset(m);
    const BufferState& b = m.buffers[access.slot];
    if (b.shadow != nullptr) m.checker->read(m, access, offset);
    return read_element<T>(b.data, offset);
  }
  Element access;
};

template <class R, class A, class F>
AnyEval make_unary(EvalPtr<A> a, F f) {
  return EvalPtr<R>(std::make_unique<UnaryEval<R, A, F>>(std::move(a), std::move(f)));
}
template <class R, class A, class F>
AnyEval make_binary(EvalPtr<A> a, EvalPtr<A> b, F f) {
  return EvalPtr<R>(
      std::make_unique<BinaryEval<R, A, F>>(std::move(a), std::move(b), std::move(f)));
}

template <class R>
AnyEval constant(R value) {
  return EvalPtr<R>(std::make_unique<ConstantEval<R>>(value));
}

}  // namespace

int ExprCompiler::var_slot(const Var& var) const {
  const auto found = vars_.find(var);
  if (found == vars_.end()) fault(fmt::format("variable `{}` is not in scope", var.name()));
  return found->second;
}

int ExprCompiler::buffer_slot(const Buffer& buffer) const {
  const auto found = buffers_.find(buffer);
  if (found == buffers_.end()) fault(fmt::format("buffer `{}` is not in scope", buffer.name()));
  return found->second;
}

template <class R>
EvalPtr<R> ExprCompiler::eval(const Expr& e) const {
  AnyEval value = any(e);
  auto* typed = std::get_if<EvalPtr<R>>(&value);
  if (typed == nullptr)
    fault(fmt::format("an expression has the unexpected type {}", name(e.dtype())));
  return std::move(*typed);
}
template EvalPtr<int64_t> ExprCompiler::eval<int64_t>(const Expr&) const;
template EvalPtr<float> ExprCompiler::eval<float>(const Expr&) const;
template EvalPtr<double> ExprCompiler::eval<double>(const Expr&) const;

AnyEval ExprCompiler::any(const Expr& e) const {
  const DType dtype = e.dtype();
  return match(
      e,
      [&](const IntImm& x) -> AnyEval {
        return with_type(dtype, [&]<class T>(T) -> AnyEval {
          if constexpr (T::kFloat)
            fault("an integer literal of a floating-point type");
          else
            return constant<int64_t>(T::wrap(static_cast<uint64_t>(x.value)));
        });
      },
      [&](const FloatImm& x) -> AnyEval {
        if (dtype == DType::F64) return constant<double>(x.value);
        return constant<float>(static_cast<float>(x.value));
      },
      [&](const VarRef& x) -> AnyEval {
        return EvalPtr<int64_t>(std::make_unique<VarEval>(var_slot(x.var)));
      },
      [&](const Unary& x) { return unary(x, dtype); },
      [&](const Binary& x) -> AnyEval {
        if (dtype == DType::I64 && x.op <= BinaryOp::Mul)
          return EvalPtr<int64_t>(std::make_unique<LinearEval>(linear(e)));
        return binary(x, x.a.dtype());
      },
      [&](const Select& x) { return select(x, dtype); },
      [&](const Cast& x) { return cast(x, dtype); }, [&](const Load& x) { return load(x); },
      [&](const MathCall& x) { return math(x, x.args[0].dtype()); });
}

Linear ExprCompiler::linear(const Expr& e) const {
  Linear sum;
  add_linear(e, 1, sum);
  return sum;
}

std::vector<Linear> ExprCompiler::linear(const std::vector<Expr>& es) const {
  std::vector<Linear> sums;
  for (const Expr& e : es) sums.push_back(linear(e));
  return sums;
}

void ExprCompiler::add_linear(const Expr& e, int64_t coefficient, Linear& sum) const {
  auto times = [&](int64_t k) {
    return static_cast<int64_t>(static_cast<uint64_t>(coefficient) * static_cast<uint64_t>(k));
  };
  if (const auto value = as_int(e)) {
    sum.constant = static_cast<int64_t>(static_cast<uint64_t>(sum.constant) +
                                        static_cast<uint64_t>(times(*value)));
    return;
  }
  if (const auto* r = e.as<VarRef>()) {
    const int slot = var_slot(r->var);
    for (Linear::Term& t : sum.terms) {
      if (t.slot != slot) continue;
      t.coefficient = static_cast<int64_t>(static_cast<uint64_t>(t.coefficient) +
                                           static_cast<uint64_t>(coefficient));
      return;
    }
    sum.terms.push_back({slot, coefficient});
    return;
  }
  if (const auto* b = e.as<Binary>()) {
    if (b->op == BinaryOp::Add || b->op == BinaryOp::Sub) {
      add_linear(b->a, coefficient, sum);
      return add_linear(b->b, b->op == BinaryOp::Add ? coefficient : times(-1), sum);
    }
    if (b->op == BinaryOp::Mul) {
      if (const auto k = as_int(b->b)) return add_linear(b->a, times(*k), sum);
      if (const auto k = as_int(b->a)) return add_linear(b->b, times(*k), sum);
    }
    sum.rest.push_back({std::get<EvalPtr<int64_t>>(binary(*b, b->a.dtype())), coefficient});
    return;
  }
  if (const auto* u = e.as<Unary>(); u != nullptr && u->op == UnaryOp::Neg)
    return add_linear(u->a, times(-1), sum);
  sum.rest.push_back({eval<int64_t>(e), coefficient});
}

Element ExprCompiler::access(const Buffer& buffer, const std::vector<Expr>& indices) const {
  if (indices.size() != buffer.rank())
    fault(fmt::format("{} indices for `{}` of rank {}", indices.size(), buffer.name(),
                      buffer.rank()));
  return {buffer_slot(buffer), buffer, linear(indices)};
}

AnyEval ExprCompiler::unary(const Unary& x, DType dtype) const {
  return with_type(dtype, [&]<class T>(T) -> AnyEval {
    using R = typename T::Repr;
    if constexpr (T::kFloat) {
      return make_unary<R, R>(eval<R>(x.a), [](R v) { return -v; });
    } else {
      EvalPtr<int64_t> a = eval<int64_t>(x.a);
      if (x.op == UnaryOp::Not)
        return make_unary<R, R>(std::move(a), [](R v) -> R { return v == 0; });
      if (x.op == UnaryOp::BitNot)
        return make_unary<R, R>(std::move(a),
                                [](R v) { return T::wrap(~static_cast<uint64_t>(v)); });
      return make_unary<R, R>(std::move(a), [](R v) { return T::wrap(-static_cast<uint64_t>(v)); });
    }
  });
}

template <class T, BinaryOp Op>
AnyEval ExprCompiler::binary_node(const Binary& x) const {
  using R = typename T::Repr;
  EvalPtr<R> a = eval<R>(x.a), b = eval<R>(x.b);
  if constexpr (!T::kFloat) {
    return make_binary<R, R>(std::move(a), std::move(b),
                             [](R u, R v) { return int_binary<T, Op>(u, v); });
  } else if constexpr (Op >= BinaryOp::Eq && Op <= BinaryOp::Ge) {
    return make_binary<int64_t, R>(std::move(a), std::move(b),
                                   [](R u, R v) { return float_compare<Op>(u, v); });
  } else if constexpr (Op <= BinaryOp::Max) {
    return make_binary<R, R>(std::move(a), std::move(b),
                             [](R u, R v) { return float_binary<T, Op>(u, v); });
  } else {
    fault(fmt::format("`{}` of floating-point numbers", symbol(Op)));
  }
}

template <class T>
AnyEval ExprCompiler::binary_of(const Binary& x) const {
  switch (x.op) {
#define TW_CASE(op)  \
  case BinaryOp::op: \
    return binary_node<T, BinaryOp::op>(x);
    TW_CASE(Add)
    TW_CASE(Sub)
    TW_CASE(Mul)
    TW_CASE(Div)
    TW_CASE(Mod)
    TW_CASE(Min)
    TW_CASE(Max)
    TW_CASE(Eq)
    TW_CASE(Ne)
    TW_CASE(Lt)
    TW_CASE(Le)
    TW_CASE(Gt)
    TW_CASE(Ge)
    TW_CASE(BitAnd)
    TW_CASE(BitOr)
    TW_CASE(BitXor)
    TW_CASE(Shl)
    TW_CASE(Shr)
#undef TW_CASE
    case BinaryOp::And:
    case BinaryOp::Or:
      break;
  }
  return logical(x);
}

AnyEval ExprCompiler::binary(const Binary& x, DType dtype) const {
  return with_type(dtype, [&]<class T>(T) { return binary_of<T>(x); });
}

AnyEval ExprCompiler::logical(const Binary& x) const {
  return EvalPtr<int64_t>(
      std::make_unique<LogicalEval>(eval<int64_t>(x.a), eval<int64_t>(x.b), x.op == BinaryOp::Or));
}

AnyEval ExprCompiler::select(const Select& x, DType dtype) const {
  return with_type(dtype, [&]<class T>(T) -> AnyEval {
    using R = typename T::Repr;
    return EvalPtr<R>(std::make_unique<SelectEval<R>>(eval<int64_t>(x.condition),
                                                      eval<R>(x.on_true), eval<R>(x.on_false)));
  });
}

AnyEval ExprCompiler::cast(const Cast& x, DType dtype) const {
  return with_type(dtype, [&]<class To>(To) -> AnyEval {
    return with_type(x.a.dtype(), [&]<class From>(From) -> AnyEval {
      using R = typename To::Repr;
      using A = typename From::Repr;
      EvalPtr<A> a = eval<A>(x.a);
      if (x.bits) return make_unary<R, A>(std::move(a), &bitcast_value<To, From>);
      return make_unary<R, A>(std::move(a), &cast_value<To, From>);
    });
  });
}

AnyEval ExprCompiler::load(const Load& x) const {
  return with_type(x.buffer.dtype(), [&]<class T>(T) -> AnyEval {
    return EvalPtr<typename T::Repr>(std::make_unique<LoadEval<T>>(access(x.buffer, x.indices)));
  });
}

AnyEval ExprCompiler::math(const MathCall& x, DType dtype) const {
  const MathFn fn = x.fn;
  const bool two = x.args.size() == 2;
  return with_type(dtype, [&]<class T>(T) -> AnyEval {
    using R = typename T::Repr;
    EvalPtr<R> a = eval<R>(x.args[0]);
    EvalPtr<R> b = two ? eval<R>(x.args[1]) : nullptr;
    if constexpr (!T::kFloat) {
      if (two)
        return make_binary<R, R>(std::move(a), std::move(b),
                                 [fn](R u, R v) { return int_math<T>(fn, u, v); });
      return make_unary<R, R>(std::move(a), [fn](R u) { return int_math<T>(fn, u); });
    } else {
      if (fn == MathFn::IsNan)
        return make_unary<int64_t, R>(std::move(a), [](R v) -> int64_t { return std::isnan(v); });
      if (fn == MathFn::IsInf)
        return make_unary<int64_t, R>(std::move(a), [](R v) -> int64_t { return std::isinf(v); });
      if (fn == MathFn::TruncDiv)
        return make_binary<R, R>(std::move(a), std::move(b),
                                 [](R u, R v) { return T::round(std::trunc(u / v)); });
      if (two)
        return make_binary<R, R>(std::move(a), std::move(b), [fn](R u, R v) {
          return T::round(static_cast<R>(float_math(fn, u, v)));
        });
      return make_unary<R, R>(std::move(a),
                              [fn](R v) { return T::round(static_cast<R>(float_math(fn, v))); });
    }
  });
}

AnyEval compile(const Expr& e, const std::vector<Var>& vars) {
  ExprCompiler compiler;
  for (const Var& var : vars) compiler.add_var(var);
  return compiler.any(e);
}

}  // namespace tilewright::interp
