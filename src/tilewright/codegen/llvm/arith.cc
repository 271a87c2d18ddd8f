// Operations on scalar and vector values. Integers wrap; division rounds down; f16 and bf16 are
// computed in f32 and rounded after each operation.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/codegen/llvm/kernel_emitter.h"

namespace tilewright::codegen {
namespace {

using llvm::Value;

/// A constant that is certainly not NaN.
bool is_number(Value* v) {
  const auto* c = llvm::dyn_cast<llvm::ConstantFP>(v);
  if (const auto* vec = llvm::dyn_cast<llvm::Constant>(v); c == nullptr && vec != nullptr)
    c = llvm::dyn_cast_or_null<llvm::ConstantFP>(vec->getSplatValue());
  return c != nullptr && !c->isNaN();
}

const llvm::ConstantInt* int_constant(Value* v) {
  if (const auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) return c;
  if (const auto* c = llvm::dyn_cast<llvm::Constant>(v); c && v->getType()->isVectorTy())
    return llvm::dyn_cast_or_null<llvm::ConstantInt>(c->getSplatValue());
  return nullptr;
}

unsigned lanes_of(Value* v) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return type ? type->getNumElements() : 0;
}

}  // namespace

llvm::Type* KernelEmitter::value_type(DType dtype) {
  if (dtype == DType::F64) return b_.getDoubleTy();
  if (is_float(dtype)) return b_.getFloatTy();
  if (dtype == DType::Bool) return b_.getInt1Ty();
  return b_.getIntNTy(static_cast<unsigned>(bit_width(dtype)));
}

llvm::Type* KernelEmitter::memory_type(DType dtype) {
  if (dtype == DType::F16) return b_.getHalfTy();
  if (dtype == DType::BF16) return b_.getInt16Ty();
  if (dtype == DType::Bool) return b_.getInt8Ty();
  return value_type(dtype);
}

llvm::Type* KernelEmitter::like(Value* v, Type* scalar) {
  const unsigned n = lanes_of(v);
  return n == 0 ? scalar : llvm::FixedVectorType::get(scalar, n);
}

Value* KernelEmitter::splat(Value* v, unsigned lanes) {
  return v->getType()->isVectorTy() ? v : b_.CreateVectorSplat(lanes, v);
}

Value* KernelEmitter::splat_to_match(Value* v, Value* other) {
  const unsigned n = lanes_of(other);
  return n == 0 ? v : splat(v, n);
}

void KernelEmitter::match_lanes(Value*& a, Value*& b) {
  a = splat_to_match(a, b);
  b = splat_to_match(b, a);
}

Value* KernelEmitter::binary_op(BinaryOp op, DType dtype, Value* a, Value* b, bool index_math) {
  match_lanes(a, b);
  if (is_float(dtype)) return float_op(op, dtype, a, b);
  if (dtype == DType::Bool) {
    switch (op) {
      case BinaryOp::And:
      case BinaryOp::Mul:
      case BinaryOp::Min:
        return b_.CreateAnd(a, b);
      case BinaryOp::Or:
      case BinaryOp::Add:
      case BinaryOp::Max:
        return b_.CreateOr(a, b);
      case BinaryOp::Sub:
      case BinaryOp::Ne:
        return b_.CreateXor(a, b);
      default:
        break;
    }
  }
  return int_op(op, dtype, a, b, index_math);
}

Value* KernelEmitter::float_op(BinaryOp op, DType dtype, Value* a, Value* b) {
  switch (op) {
    case BinaryOp::Add:
      return round_to(dtype, b_.CreateFAdd(a, b));
    case BinaryOp::Sub:
      return round_to(dtype, b_.CreateFSub(a, b));
    case BinaryOp::Mul:
      return round_to(dtype, b_.CreateFMul(a, b));
    case BinaryOp::Div:
      return round_to(dtype, b_.CreateFDiv(a, b));
    case BinaryOp::Mod: {
      Value* down = b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(a, b));
      return round_to(dtype, b_.CreateFSub(a, b_.CreateFMul(b, down)));
    }
    case BinaryOp::Min:
      return min_max(false, a, b);
    case BinaryOp::Max:
      return min_max(true, a, b);
    case BinaryOp::Eq:
      return b_.CreateFCmpOEQ(a, b);
    case BinaryOp::Ne:
      return b_.CreateFCmpUNE(a, b);
    case BinaryOp::Lt:
      return b_.CreateFCmpOLT(a, b);
    case BinaryOp::Le:
      return b_.CreateFCmpOLE(a, b);
    case BinaryOp::Gt:
      return b_.CreateFCmpOGT(a, b);
    case BinaryOp::Ge:
      return b_.CreateFCmpOGE(a, b);
    default:
      TW_CHECK(false, "{} of floats", symbol(op));
  }
}

/// NaN wins. Written as compare and select in the order that one x86 instruction has; the operand
/// that may be NaN is the one it hands on.
Value* KernelEmitter::min_max(bool is_max, Value* a, Value* b) {
  if (is_number(a) && !is_number(b)) std::swap(a, b);
  Value* takes_b = is_max ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOGT(a, b);
  Value* out = b_.CreateSelect(takes_b, b, a);
  if (is_number(b)) return out;
  if (Value* fixed = replace_nan(out, b)) return fixed;
  return b_.CreateSelect(b_.CreateFCmpUNO(b, b), b, out);
}

/// `b` where it is NaN, else `out`, by the one AVX-512 instruction that tells NaN; null without it.
Value* KernelEmitter::replace_nan(Value* out, Value* b) {
  if (!std::binary_search(target_.features.begin(), target_.features.end(), "+avx512vl") ||
      !b->getType()->getScalarType()->isFloatTy())
    return nullptr;
  llvm::Intrinsic::ID id = 0;
  switch (lanes_of(b)) {
    case 16:
      id = llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512;
      break;
    case 8:
      id = llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_256;
      break;
    case 4:
      id = llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_128;
      break;
    default:
      return nullptr;
  }
  // Four bits for each kind of value; kinds 0 and 1 are NaN: take it (2). Others: keep `out` (0).
  Value* table = b_.CreateVectorSplat(lanes_of(b), b_.getInt32(0x22));
  std::vector<Value*> args = {
      out, b, table, b_.getInt32(0),
      llvm::Constant::getAllOnesValue(b_.getIntNTy(std::max(8U, lanes_of(b))))};
  if (lanes_of(b) == 16) args.push_back(b_.getInt32(4));  // current rounding
  return b_.CreateIntrinsic(id, {}, args);
}

Value* KernelEmitter::int_op(BinaryOp op, DType dtype, Value* a, Value* b, bool index_math) {
  const bool is_signed = is_signed_int(dtype);
  switch (op) {
    case BinaryOp::Add:
      return b_.CreateAdd(a, b, "", false, index_math);
    case BinaryOp::Sub:
      return b_.CreateSub(a, b, "", false, index_math);
    case BinaryOp::Mul:
      return b_.CreateMul(a, b, "", false, index_math);
    case BinaryOp::Div:
    case BinaryOp::Mod:
      return divide(op, dtype, a, b, false);
    case BinaryOp::Min:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a,
                                      b);
    case BinaryOp::Max:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a,
                                      b);
    case BinaryOp::Eq:
      return b_.CreateICmpEQ(a, b);
    case BinaryOp::Ne:
      return b_.CreateICmpNE(a, b);
    case BinaryOp::Lt:
      return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case BinaryOp::Le:
      return is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case BinaryOp::Gt:
      return is_signed ? b_.CreateICmpSGT(a, b) : b_.CreateICmpUGT(a, b);
    case BinaryOp::Ge:
      return is_signed ? b_.CreateICmpSGE(a, b) : b_.CreateICmpUGE(a, b);
    case BinaryOp::And:
    case BinaryOp::BitAnd:
      return b_.CreateAnd(a, b);
    case BinaryOp::Or:
    case BinaryOp::BitOr:
      return b_.CreateOr(a, b);
    case BinaryOp::BitXor:
      return b_.CreateXor(a, b);
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      break;
  }
  // A shift by the width or more is undefined in LLVM; here it shifts everything out.
  const auto width = static_cast<uint64_t>(bit_width(dtype));
  Value* last = llvm::ConstantInt::get(b->getType(), width - 1);
  if (op == BinaryOp::Shr && is_signed)
    return b_.CreateAShr(a, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, last));
  Value* shifted = op == BinaryOp::Shl ? b_.CreateShl(a, b) : b_.CreateLShr(a, b);
  if (const auto* c = int_constant(b)) {
    return c->getValue().ult(width) ? shifted : llvm::Constant::getNullValue(a->getType());
  }
  Value* fits = b_.CreateICmpULE(b, last);
  return b_.CreateSelect(fits, b_.CreateFreeze(shifted),
                         llvm::Constant::getNullValue(a->getType()));
}

/// Floor division or modulo; `non_negative` says that the dividend is and the divisor is positive.
Value* KernelEmitter::divide(BinaryOp op, DType dtype, Value* a, Value* b, bool non_negative) {
  const bool is_div = op == BinaryOp::Div;
  Value* zero = llvm::Constant::getNullValue(a->getType());
  const auto* c = int_constant(b);
  if (c != nullptr && c->isZero()) return zero;
  if (c == nullptr) {  // lanes that are masked off may hold a zero divisor
    Value* one = llvm::ConstantInt::get(b->getType(), 1);
    b = b_.CreateSelect(b_.CreateICmpEQ(b, zero), one, b);
  }
  if (non_negative || !is_signed_int(dtype))
    return is_div ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  if (c != nullptr && c->getValue().isPowerOf2() && !c->getValue().isNegative()) {
    if (is_div) return b_.CreateAShr(a, c->getValue().logBase2());
    return b_.CreateAnd(a, llvm::ConstantInt::get(a->getType(), c->getValue() - 1));
  }
  if (c != nullptr && c->isMinusOne()) return is_div ? b_.CreateNeg(a) : zero;
  Value* negate = nullptr;  // the lowest value divided by -1 traps
  if (c == nullptr) {
    Value* minus_one = llvm::Constant::getAllOnesValue(b->getType());
    negate = b_.CreateICmpEQ(b, minus_one);
    b = b_.CreateSelect(negate, llvm::ConstantInt::get(b->getType(), 1), b);
  }
  Value* quotient = b_.CreateSDiv(a, b);
  Value* remainder = b_.CreateSub(a, b_.CreateMul(quotient, b));
  Value* down = b_.CreateAnd(b_.CreateICmpNE(remainder, zero),
                             b_.CreateICmpSLT(b_.CreateXor(remainder, b), zero));
  if (is_div) {
    Value* out = b_.CreateSub(quotient, b_.CreateZExt(down, a->getType()));
    return negate ? b_.CreateSelect(negate, b_.CreateNeg(a), out) : out;
  }
  Value* out = b_.CreateSelect(down, b_.CreateAdd(remainder, b), remainder);
  return negate ? b_.CreateSelect(negate, zero, out) : out;
}

Value* KernelEmitter::round_to(DType dtype, Value* v) {
  if (dtype == DType::F16)
    return b_.CreateFPExt(b_.CreateFPTrunc(v, like(v, b_.getHalfTy())), v->getType());
  if (dtype == DType::BF16) return from_memory(dtype, to_memory(dtype, v));
  return v;
}

/// Memory form to value form.
Value* KernelEmitter::from_memory(DType dtype, Value* raw) {
  if (dtype == DType::F16) return b_.CreateFPExt(raw, like(raw, b_.getFloatTy()));
  if (dtype == DType::Bool)
    return b_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
  if (dtype != DType::BF16) return raw;
  Value* wide = b_.CreateShl(b_.CreateZExt(raw, like(raw, b_.getInt32Ty())), 16);
  return b_.CreateBitCast(wide, like(raw, b_.getFloatTy()));
}

/// Value form to memory form. bf16 is rounded with integer arithmetic: the hardware instruction
/// flushes denormals, and the library routine is missing from older runtimes.
Value* KernelEmitter::to_memory(DType dtype, Value* v) {
  if (dtype == DType::F16) return b_.CreateFPTrunc(v, like(v, b_.getHalfTy()));
  if (dtype == DType::Bool) return b_.CreateZExt(v, like(v, b_.getInt8Ty()));
  if (dtype != DType::BF16) return v;
  Type* i32 = like(v, b_.getInt32Ty());
  auto constant = [&](uint64_t c) { return llvm::ConstantInt::get(i32, c); };
  Value* bits = b_.CreateBitCast(v, i32);
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), constant(1));
  Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, constant(0x7fff)), odd);
  Value* quiet = b_.CreateOr(bits, constant(0x400000));
  Value* out = b_.CreateSelect(b_.CreateFCmpUNO(v, v), quiet, rounded);
  return b_.CreateTrunc(b_.CreateLShr(out, 16), like(v, b_.getInt16Ty()));
}

/// Lanes of floats to integers of 8 or 16 bits: clamped as floats (NaN becomes 0), then by way of
/// i32; LLVM takes its own saturating conversion apart lane by lane.
Value* KernelEmitter::narrowed(DType to, Value* v) {
  const bool sign = is_signed_int(to);
  const int bits = bit_width(to) - (sign ? 1 : 0);
  const double most = static_cast<double>((int64_t{1} << bits) - 1), least = sign ? -most - 1 : 0;
  Value* lo = llvm::ConstantFP::get(v->getType(), least);
  Value* hi = llvm::ConstantFP::get(v->getType(), most);
  Value* zero = llvm::Constant::getNullValue(v->getType());
  // Comparisons with NaN are false.
  Value* x = sign ? b_.CreateSelect(b_.CreateFCmpORD(v, v), v, zero) : v;
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, lo), x, lo);
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, hi), x, hi);
  Value* wide = b_.CreateFPToSI(x, like(v, b_.getInt32Ty()));
  return b_.CreateTrunc(wide, like(v, value_type(to)));
}

Value* KernelEmitter::convert(DType to, DType from, Value* v) {
  Type* type = like(v, value_type(to));
  if (to == DType::Bool) {
    Value* zero = llvm::Constant::getNullValue(v->getType());
    return is_float(from) ? b_.CreateFCmpUNE(v, zero) : b_.CreateICmpNE(v, zero);
  }
  if (is_float(to)) {
    if (is_float(from)) return round_to(to, b_.CreateFPCast(v, type));
    Value* f = is_signed_int(from) ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type);
    return round_to(to, f);
  }
  if (is_float(from) && bit_width(to) < 32 && v->getType()->isVectorTy()) return narrowed(to, v);
  if (is_float(from)) {
    const auto id = is_signed_int(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {type, v->getType()}, {v});
  }
  return is_signed_int(from) ? b_.CreateSExtOrTrunc(v, type) : b_.CreateZExtOrTrunc(v, type);
}

Value* KernelEmitter::reinterpret(DType to, DType from, Value* v) {
  Value* raw = to_memory(from, v);
  return from_memory(to, b_.CreateBitCast(raw, like(v, memory_type(to))));
}

Value* KernelEmitter::libm(const std::string& name, const std::vector<Value*>& args) {
  Type* scalar = args[0]->getType()->getScalarType();
  const std::vector<Type*> types(args.size(), scalar);
  llvm::FunctionCallee callee = module_.getOrInsertFunction(
      name + (scalar->isFloatTy() ? "f" : ""), llvm::FunctionType::get(scalar, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  const unsigned lanes = lanes_of(args[0]);
  if (lanes == 0) return b_.CreateCall(callee, args);
  Value* out = llvm::PoisonValue::get(args[0]->getType());
  for (unsigned l = 0; l < lanes; ++l) {
    std::vector<Value*> elements;
    for (Value* arg : args) elements.push_back(b_.CreateExtractElement(arg, l));
    out = b_.CreateInsertElement(out, b_.CreateCall(callee, elements), l);
  }
  return out;
}

Value* KernelEmitter::int_math(const MathCall& m, DType dtype, const std::vector<Value*>& args) {
  Value* a = args[0];
  if (m.fn == MathFn::Abs && is_signed_int(dtype))
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse());
  if (m.fn == MathFn::Popcount) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a);
  if (m.fn == MathFn::TruncDiv || m.fn == MathFn::TruncMod) {
    Value* b = args[1];
    Type* type = a->getType();
    Value* one = llvm::ConstantInt::get(type, 1);
    Value* zero = llvm::Constant::getNullValue(type);
    b = b_.CreateSelect(b_.CreateICmpEQ(b, zero), one, b);
    const bool is_div = m.fn == MathFn::TruncDiv;
    if (!is_signed_int(dtype)) return is_div ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
    Value* negate = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
    b = b_.CreateSelect(negate, one, b);
    Value* out = is_div ? b_.CreateSDiv(a, b) : b_.CreateSRem(a, b);
    return is_div ? b_.CreateSelect(negate, b_.CreateNeg(a), out) : out;
  }
  if (m.fn != MathFn::Pow) return a;
  // Square and multiply over all bits of the exponent, without a loop.
  Value *result = llvm::ConstantInt::get(a->getType(), 1), *base = a;
  for (int bit = 0; bit < bit_width(dtype) - (is_signed_int(dtype) ? 1 : 0); ++bit) {
    Value* set =
        b_.CreateTrunc(b_.CreateLShr(args[1], static_cast<uint64_t>(bit)), like(a, b_.getInt1Ty()));
    result = b_.CreateSelect(set, b_.CreateMul(result, base), result);
    base = b_.CreateMul(base, base);
  }
  if (!is_signed_int(dtype)) return result;
  Value* one = llvm::ConstantInt::get(a->getType(), 1);
  Value* minus = llvm::Constant::getAllOnesValue(a->getType());
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* odd = b_.CreateTrunc(args[1], like(a, b_.getInt1Ty()));
  Value* inverse = b_.CreateSelect(b_.CreateICmpEQ(a, minus), b_.CreateSelect(odd, minus, one),
                                   b_.CreateSelect(b_.CreateICmpEQ(a, one), one, zero));
  return b_.CreateSelect(b_.CreateICmpSLT(args[1], zero), inverse, result);
}

Value* KernelEmitter::math_call(const MathCall& m, DType dtype) {
  const DType arg_type = m.args[0].dtype();
  std::vector<Value*> args;
  for (const Expr& arg : m.args) args.push_back(emit(arg));
  if (args.size() == 2) match_lanes(args[0], args[1]);
  Value* a = args[0];
  if (!is_float(arg_type)) {
    if (dtype == DType::Bool && arg_type != DType::Bool)
      return llvm::Constant::getNullValue(like(a, b_.getInt1Ty()));
    return int_math(m, arg_type, args);
  }
  struct Row {
    MathFn fn;
    llvm::Intrinsic::ID id;
  };
  constexpr Row kIntrinsics[] = {
      {MathFn::Abs, llvm::Intrinsic::fabs},        {MathFn::Sqrt, llvm::Intrinsic::sqrt},
      {MathFn::Floor, llvm::Intrinsic::floor},     {MathFn::Ceil, llvm::Intrinsic::ceil},
      {MathFn::Round, llvm::Intrinsic::roundeven}, {MathFn::Trunc, llvm::Intrinsic::trunc}};
  for (const Row& row : kIntrinsics)
    if (row.fn == m.fn) return round_to(dtype, b_.CreateUnaryIntrinsic(row.id, a));
  Value* one = llvm::ConstantFP::get(a->getType(), 1.0);
  switch (m.fn) {
    case MathFn::IsNan:
      return b_.CreateFCmpUNO(a, a);
    case MathFn::IsInf:
      return b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a),
                              llvm::ConstantFP::getInfinity(a->getType()));
    case MathFn::Rsqrt:
      return round_to(dtype, b_.CreateFDiv(one, b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a)));
    case MathFn::Sigmoid:
      return round_to(dtype,
                      b_.CreateFDiv(one, b_.CreateFAdd(one, libm("exp", {b_.CreateFNeg(a)}))));
    case MathFn::TruncMod:
      return round_to(dtype, libm("fmod", args));
    case MathFn::TruncDiv:
      return round_to(dtype,
                      b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b_.CreateFDiv(a, args[1])));
    default:
      return round_to(dtype, libm(std::string(name(m.fn)), args));
  }
}

}  // namespace tilewright::codegen
