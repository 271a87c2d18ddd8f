#include "tilewright/rules/fpga/operand_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tilewright/cost/sums/computation.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::rules {
namespace {

bool reads_buffers(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& part) { found |= part.as<Load>() != nullptr; });
  return found;
}

class Retyper {
 public:
  Retyper(const Func& func, DType dtype) : func_(func), dtype_(dtype), wide_(accumulator(dtype)) {}

  Result<Func> run(const cost::Computation& sum) {
    find_operands(sum);
    for (const Param& param : func_.params) {
      if (param.values)
        return fail(ErrorKind::Unsupported,
                    fmt::format("the numbers of {} have a type of their own", param.buffer.name()),
                    "they are part of the program", "make it a parameter without values");
      rename(param.buffer);
    }
    walk(func_.body, [&](const Stmt& s) {
      if (const auto* alloc = s.as<Alloc>()) rename(alloc->buffer);
    });
    Func out = func_;
    out.name += fmt::format("_{}", name(dtype_));
    for (Param& param : out.params) param.buffer = buffers_.at(param.buffer);
    out.body = rewrite(func_.body, [&](const Stmt& s) { return statement(s); });
    if (problem_) return tl::unexpected<Error>(*problem_);
    return out;
  }

 private:
  /// Those of the sum, and what copies them: no arithmetic, no other source.
  void find_operands(const cost::Computation& sum) {
    for (const Param& param : func_.params)
      for (const cost::SpatialTensor& factor : sum.factors)
        if (param.buffer.name() == factor.name) operands_[param.buffer] = param.buffer;
    for (bool more = true; more;) {
      more = false;
      walk(func_.body, [&](const Stmt& s) {
        const auto* store = s.as<Store>();
        if (store == nullptr || store->combine != Combine::Set || operands_.contains(store->buffer))
          return;
        if (!copies(store->value)) return;
        operands_[store->buffer] = store->buffer;
        more = true;
      });
    }
  }

  bool copies(const Expr& e) const {
    if (const auto* load = e.as<Load>()) return operands_.contains(load->buffer);
    const auto* choice = e.as<Select>();
    if (choice == nullptr) return false;
    const auto one = [&](const Expr& side) {
      return copies(side) || side.as<IntImm>() != nullptr || side.as<FloatImm>() != nullptr;
    };
    return (copies(choice->on_true) || copies(choice->on_false)) && one(choice->on_true) &&
           one(choice->on_false);
  }

  void rename(const Buffer& old) {
    buffers_[old] =
        Buffer(old.name(), operands_.contains(old) ? dtype_ : wide_, old.shape(), old.scope());
  }

  Stmt statement(const Stmt& s) {
    if (const auto* alloc = s.as<Alloc>())
      return make(Alloc{buffers_.at(alloc->buffer), alloc->marks});
    const auto* store = s.as<Store>();
    if (store == nullptr) return s;
    const Buffer& buffer = buffers_.at(store->buffer);
    return make(Store{buffer, store->indices, value(store->value, buffer.dtype()), store->combine});
  }

  /// `e` computed in `type`. Index arithmetic keeps its own.
  Expr value(const Expr& e, DType type) {
    return match(
        e, [&](const IntImm& n) { return number(e, static_cast<double>(n.value), type); },
        [&](const FloatImm& n) { return number(e, n.value, type); },
        [&](const VarRef&) { return cast(type, e); },
        [&](const Load& read) { return cast(type, load(buffers_.at(read.buffer), read.indices)); },
        [&](const Cast& change) {
          if (change.bits) return lacks(e, type);
          return reads_buffers(change.a) || is_float(change.a.dtype()) ? value(change.a, type)
                                                                       : cast(type, change.a);
        },
        [&](const Unary& op) {
          return op.op == UnaryOp::Neg ? unary(op.op, value(op.a, type)) : lacks(e, type);
        },
        [&](const Binary& op) {
          constexpr BinaryOp kOfBoth[] = {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul,
                                          BinaryOp::Min, BinaryOp::Max};
          const bool both =
              std::find(std::begin(kOfBoth), std::end(kOfBoth), op.op) != std::end(kOfBoth);
          if (!both && !(op.op == BinaryOp::Div && is_float(type) && is_float(e.dtype())))
            return lacks(e, type);
          return binary(op.op, value(op.a, type), value(op.b, type));
        },
        [&](const Select& choice) {
          return select(condition(choice.condition), value(choice.on_true, type),
                        value(choice.on_false, type));
        },
        [&](const MathCall& call) {
          if (!is_float(type) || !is_float(e.dtype())) return lacks(e, type);
          std::vector<Expr> args;
          for (const Expr& arg : call.args) args.push_back(value(arg, type));
          return math(call.fn, std::move(args));
        });
  }

  Expr condition(const Expr& e) {
    if (!reads_buffers(e)) return e;
    const auto* op = e.as<Binary>();
    if (op != nullptr && (op->op == BinaryOp::And || op->op == BinaryOp::Or))
      return binary(op->op, condition(op->a), condition(op->b));
    if (op != nullptr && is_comparison(op->op))
      return binary(op->op, value(op->a, wide_), value(op->b, wide_));
    const auto* no = e.as<Unary>();
    if (no != nullptr && no->op == UnaryOp::Not) return logical_not(condition(no->a));
    lacks(e, wide_);
    return bool_imm(false);
  }

  Expr number(const Expr& e, double n, DType type) {
    const double limit = std::ldexp(1.0, bit_width(type) - 1);
    if (!is_float(type) && (n != std::floor(n) || n < -limit || n >= limit)) return lacks(e, type);
    return const_of(type, n);
  }

  Expr lacks(const Expr& e, DType type) {
    if (!problem_)
      problem_ =
          fail(ErrorKind::Unsupported,
               fmt::format("'{}' has no meaning with operands in {}", func_.name, name(dtype_)),
               fmt::format("`{}` cannot be computed in {}", print(e), name(type)),
               "a program written for that type")
              .value();
    return const_of(type, 0);
  }

  const Func& func_;
  DType dtype_, wide_;
  BufferMap operands_;  ///< as a set
  BufferMap buffers_;
  std::optional<Error> problem_;
};

}  // namespace

Result<Func> with_operands(const Func& func, DType dtype) {
  const cost::Computations found = cost::computations_of(func);
  if (found.sums.size() != 1)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' has {} sums of products, not one", func.name, found.sums.size()),
                found.others.empty() ? "" : found.others[0].reason,
                "a program with one sum, or without another type of operands");
  const cost::Computation& sum = found.sums[0];
  if (std::all_of(sum.dtypes.begin(), sum.dtypes.end() - 1,
                  [&](DType operand) { return operand == dtype; }))
    return func;
  return Retyper(func, dtype).run(sum);
}

}  // namespace tilewright::rules
