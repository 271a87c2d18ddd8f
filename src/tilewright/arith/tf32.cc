#include "tilewright/arith/tf32.h"

namespace tilewright::arith {
namespace {

/// Half of the last bit that is kept, and the bits that are.
constexpr int64_t kHalf = 1 << 12, kKept = 0xffffe000;

}  // namespace

Expr round_to_tf32(const Expr& x) {
  const Expr bits = bitcast(DType::U32, x) + int_imm(kHalf, DType::U32);
  const Expr kept = binary(BinaryOp::BitAnd, bits, int_imm(kKept, DType::U32));
  return select(math(MathFn::IsNan, {x}), x, bitcast(DType::F32, kept));
}

Expr rounded_to_tf32(const Expr& e) {
  const auto* choice = e.as<Select>();
  if (choice == nullptr || e.dtype() != DType::F32) return {};
  return equal(e, round_to_tf32(choice->on_true)) ? choice->on_true : Expr();
}

}  // namespace tilewright::arith
