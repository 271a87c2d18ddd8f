// Expressions to LLVM values. A value is a vector exactly when it varies between lanes (or was
// widened); shared nodes are emitted once per statement.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/codegen/llvm/kernel_emitter.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {

using llvm::Value;

Value* KernelEmitter::emit(const Expr& e) {
  if (const auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
  Value* v = build(e);
  memo_[e.get()] = v;
  memo_order_.push_back(e.get());
  return v;
}

/// Values made on a path that may not run are unknown elsewhere.
void KernelEmitter::forget_after(size_t mark) {
  for (; memo_order_.size() > mark; memo_order_.pop_back()) memo_.erase(memo_order_.back());
}

Value* KernelEmitter::build(const Expr& e) {
  const DType dtype = e.dtype();
  return match(
      e,
      [&](const IntImm& x) -> Value* {
        return llvm::ConstantInt::get(value_type(dtype), static_cast<uint64_t>(x.value),
                                      is_signed_int(dtype));
      },
      [&](const FloatImm& x) -> Value* {
        return llvm::ConstantFP::get(value_type(dtype), x.value);
      },
      [&](const VarRef& x) -> Value* {
        if (lanes_ && x.var == lanes_->var) {
          std::vector<llvm::Constant*> steps;
          for (unsigned l = 0; l < lanes_->count; ++l) steps.push_back(b_.getInt64(l));
          return b_.CreateAdd(splat(lanes_->base, lanes_->count), llvm::ConstantVector::get(steps),
                              "", true, true);
        }
        const auto it = vars_.find(x.var);
        TW_CHECK(it != vars_.end(), "variable {} has no value", x.var.name());
        return it->second;
      },
      [&](const Unary& x) -> Value* {
        Value* a = emit(x.a);
        if (x.op != UnaryOp::Neg) return b_.CreateNot(a);
        return is_float(dtype) ? b_.CreateFNeg(a) : b_.CreateNeg(a);
      },
      [&](const Binary& x) -> Value* {
        if (x.op == BinaryOp::And || x.op == BinaryOp::Or) return logic(x);
        if (Value* v = fused(e, x)) return v;
        Value *a = emit(x.a), *b = emit(x.b);
        if (dtype == DType::I64 && (x.op == BinaryOp::Div || x.op == BinaryOp::Mod)) {
          const auto range = arith::const_range(x.a, bounds_);
          const auto divisor = arith::const_range(x.b, bounds_);
          match_lanes(a, b);
          return divide(x.op, dtype, a, b,
                        range && range->first >= 0 && divisor && divisor->first > 0);
        }
        return binary_op(x.op, x.a.dtype(), a, b, false);
      },
      [&](const Select& x) -> Value* { return select(e, x); },
      [&](const Cast& x) -> Value* {
        Value* a = emit(x.a);
        if (dtype == x.a.dtype()) return a;
        return x.bits ? reinterpret(dtype, x.a.dtype(), a) : convert(dtype, x.a.dtype(), a);
      },
      [&](const Load& x) -> Value* { return load_element(x, dtype); },
      [&](const MathCall& x) -> Value* { return math_call(x, dtype); });
}

/// a*b + c as one operation where the Func allows it.
Value* KernelEmitter::fused(const Expr& e, const Binary& x) {
  const bool add = x.op == BinaryOp::Add, sub = x.op == BinaryOp::Sub;
  const bool wide = e.dtype() == DType::F32 || e.dtype() == DType::F64;
  if (!fast_ || !wide || (!add && !sub)) return nullptr;
  auto product = [](const Expr& y) -> const Binary* {
    const auto* b = y.as<Binary>();
    return b && b->op == BinaryOp::Mul ? b : nullptr;
  };
  const Binary* left = product(x.a);
  const Binary* right = product(x.b);
  if (left == nullptr && right == nullptr) return nullptr;
  const Binary* mul = right ? right : left;
  Value *p = emit(mul->a), *q = emit(mul->b), *r = emit(right ? x.a : x.b);
  if (sub && right) p = b_.CreateFNeg(p);
  if (sub && !right) r = b_.CreateFNeg(r);
  match_lanes(p, q), match_lanes(p, r), match_lanes(q, r);
  return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {p->getType()}, {p, q, r});
}

/// Loads must not run where the program would not reach them, unless they are provably inside.
bool KernelEmitter::must_stay_lazy(const Expr& e) {
  if (const auto it = lazy_.find(e.get()); it != lazy_.end()) return it->second;
  const bool lazy = match(
      e, [&](const Unary& x) { return must_stay_lazy(x.a); },
      [&](const Binary& x) { return must_stay_lazy(x.a) || must_stay_lazy(x.b); },
      [&](const Select& x) {
        return must_stay_lazy(x.condition) || must_stay_lazy(x.on_true) ||
               must_stay_lazy(x.on_false);
      },
      [&](const Cast& x) { return must_stay_lazy(x.a); },
      [&](const Load& x) {  // an index that is inside may be computed from one that is not
        return !provably_inside(x.buffer, x.indices) ||
               std::any_of(x.indices.begin(), x.indices.end(),
                           [&](const Expr& index) { return must_stay_lazy(index); });
      },
      [&](const MathCall& x) {
        for (const Expr& arg : x.args)
          if (must_stay_lazy(arg)) return true;
        return false;
      },
      [](const auto&) { return false; });
  return lazy_[e.get()] = lazy;
}

Value* KernelEmitter::branchy(Value* condition, const std::function<Value*()>& on_true,
                              const std::function<Value*()>& on_false) {
  auto* yes = llvm::BasicBlock::Create(context_, "yes", function_);
  auto* no = llvm::BasicBlock::Create(context_, "no", function_);
  auto* join = llvm::BasicBlock::Create(context_, "join", function_);
  b_.CreateCondBr(condition, yes, no);
  const size_t mark = memo_order_.size();
  b_.SetInsertPoint(yes);
  Value* a = on_true();
  auto* yes_end = b_.GetInsertBlock();
  forget_after(mark);
  b_.SetInsertPoint(no);
  Value* b = on_false();
  auto* no_end = b_.GetInsertBlock();
  forget_after(mark);
  if (b->getType() != a->getType()) {
    b = splat_to_match(b, a);
    b_.SetInsertPoint(yes_end);
    a = splat_to_match(a, b);
  }
  b_.SetInsertPoint(yes_end);
  b_.CreateBr(join);
  b_.SetInsertPoint(no_end);
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* phi = b_.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, yes_end);
  phi->addIncoming(b, no_end);
  return phi;
}

Value* KernelEmitter::under_mask(Value* mask, const std::function<Value*()>& body) {
  Value* const outer = lanes_->mask;
  const bool tail = lanes_->only_tail, some_run = lanes_->some_run;
  lanes_->mask = outer ? b_.CreateAnd(outer, mask) : mask;
  lanes_->only_tail = lanes_->some_run = false;
  const size_t mark = memo_order_.size();
  Value* v = body();
  forget_after(mark);  // loaded under a mask: lanes outside it hold nothing
  lanes_->mask = outer;
  lanes_->only_tail = tail;
  lanes_->some_run = some_run;
  return v;
}

Value* KernelEmitter::select(const Expr&, const Select& s) {
  Value* condition = emit(s.condition);
  const bool lazy_a = must_stay_lazy(s.on_true), lazy_b = must_stay_lazy(s.on_false);
  const bool vector = condition->getType()->isVectorTy();
  if ((lazy_a || lazy_b) && !vector)
    return branchy(condition, [&] { return emit(s.on_true); }, [&] { return emit(s.on_false); });
  Value* a = lazy_a ? under_mask(condition, [&] { return emit(s.on_true); }) : emit(s.on_true);
  Value* b = lazy_b ? under_mask(b_.CreateNot(condition), [&] { return emit(s.on_false); })
                    : emit(s.on_false);
  match_lanes(a, b);
  if (vector) {
    a = splat_to_match(a, condition);
    b = splat_to_match(b, condition);
  }
  return b_.CreateSelect(condition, a, b);
}

Value* KernelEmitter::logic(const Binary& x) {
  const bool is_and = x.op == BinaryOp::And;
  Value* a = emit(x.a);
  if (!must_stay_lazy(x.b)) {
    Value* b = emit(x.b);
    match_lanes(a, b);
    return is_and ? b_.CreateAnd(a, b) : b_.CreateOr(a, b);
  }
  if (!a->getType()->isVectorTy()) {
    auto rest = [&] { return emit(x.b); };
    auto done = [&]() -> Value* { return b_.getInt1(!is_and); };
    return is_and ? branchy(a, rest, done) : branchy(a, done, rest);
  }
  Value* b = under_mask(is_and ? a : b_.CreateNot(a), [&] { return emit(x.b); });
  match_lanes(a, b);
  return is_and ? b_.CreateAnd(a, b) : b_.CreateOr(a, b);
}

/// True if `e` may differ between lanes.
bool KernelEmitter::varies(const Expr& e) const { return lanes_ && uses(e, lanes_->var); }

}  // namespace tilewright::codegen
