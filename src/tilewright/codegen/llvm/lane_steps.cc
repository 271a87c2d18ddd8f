#include "tilewright/codegen/llvm/lane_steps.h"

#include "tilewright/arith/affine.h"
#include "tilewright/arith/bounds.h"

namespace tilewright::codegen {

std::optional<LaneSteps> lane_steps(const Expr& e, const Var& lane, int64_t base, unsigned count) {
  if (const auto* var = e.as<VarRef>(); var != nullptr && var->var == lane) {
    LaneSteps plain{int_imm(0), {}};
    for (unsigned l = 0; l < count; ++l) plain.steps.push_back(base + l);
    return plain;
  }
  const auto* part = e.as<Binary>();
  if (part == nullptr || (part->op != BinaryOp::Div && part->op != BinaryOp::Mod))
    return std::nullopt;
  const int64_t by = as_int(part->b).value_or(0);
  if (by <= 0) return std::nullopt;
  const arith::Affine inside = arith::as_affine(part->a);
  arith::Affine shared;  // the quotient of what all lanes share
  int64_t step = 0;
  for (const auto& [term, coefficient] : inside.terms) {
    const auto* var = term.as<VarRef>();
    if (var != nullptr && var->var == lane) {
      step = coefficient;
    } else if (uses(term, lane) || coefficient % by != 0) {
      return std::nullopt;
    } else {
      shared.terms.emplace_back(term, coefficient / by);
    }
  }
  const bool quotient = part->op == BinaryOp::Div;
  LaneSteps found{quotient ? arith::to_expr(shared) : int_imm(0), {}};
  for (unsigned l = 0; l < count; ++l) {
    const int64_t at = inside.constant + step * (base + l);
    found.steps.push_back(quotient ? arith::floor_div(at, by) : arith::floor_mod(at, by));
  }
  return found;
}

}  // namespace tilewright::codegen
