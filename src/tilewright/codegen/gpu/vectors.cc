#include "tilewright/codegen/gpu/vectors.h"

#include <algorithm>
#include <cmath>

#include "tilewright/arith/exhaust.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

/// The linear index of an element, if iterations of `var` move it by one; else absent.
Expr consecutive(const Buffer& buffer, const std::vector<Expr>& indices, const Var& var,
                 const std::map<Buffer, std::vector<Expr>>& strides, const arith::Bounds& bounds) {
  const auto it = strides.find(buffer);
  if (it == strides.end()) return {};
  Expr offset = int_imm(0);
  for (size_t axis = 0; axis < indices.size(); ++axis)
    offset = offset + indices[axis] * it->second[axis];
  offset = arith::simplify(offset, bounds);
  if (!arith::counts_up(offset, var, bounds)) return {};
  return offset;
}

bool is_plus_zero(const Expr& e) {
  const auto* real = e.as<FloatImm>();
  return is_const_int(e, 0) || (real != nullptr && real->value == 0 && !std::signbit(real->value));
}

/// Whether `e` is a multiple of `lanes` where `var` is 0.
bool is_aligned(const Expr& e, int64_t lanes, const Var& var, const arith::Bounds& bounds) {
  const Expr first = substitute(e, {{var, int_imm(0)}});
  return arith::prove(eq(first % lanes, int_imm(0)), bounds) ||
         arith::is_multiple(first, lanes, bounds);
}

/// Whether `condition` is the same for every aligned group of `lanes` values of `var`.
bool is_uniform(const Expr& condition, int64_t lanes, const Var& var, const arith::Bounds& bounds) {
  if (!uses(condition, var)) return true;
  const auto* b = condition.as<Binary>();
  if (b == nullptr) return false;
  if (b->op == BinaryOp::And || b->op == BinaryOp::Or)
    return is_uniform(b->a, lanes, var, bounds) && is_uniform(b->b, lanes, var, bounds);
  // e < c or c <= e, where e counts up from a multiple of lanes, and c is one.
  const bool below = b->op == BinaryOp::Lt, above = b->op == BinaryOp::Le;
  const Expr &e = below ? b->a : b->b, &c = below ? b->b : b->a;
  if ((!below && !above) || uses(c, var)) return false;
  const arith::Affine sum = arith::as_affine(arith::simplify(e, bounds));
  if (sum.coefficient(var) != 1) return false;
  for (const auto& [term, coefficient] : sum.terms)
    if (!term.as<VarRef>() && uses(term, var)) return false;
  return is_aligned(e, lanes, var, bounds) && is_aligned(c, lanes, var, bounds);
}

}  // namespace

std::optional<Copy> copy_of(const Store& store) {
  if (store.combine != Combine::Set) return std::nullopt;
  const auto* select = store.value.as<Select>();
  const auto* from = (select ? select->on_true : store.value).as<Load>();
  if (from == nullptr || from->buffer.dtype() != store.buffer.dtype()) return std::nullopt;
  if (select != nullptr && !is_plus_zero(select->on_false)) return std::nullopt;
  return Copy{*from, select ? select->condition : Expr()};
}

int64_t copy_lanes(const For& loop, const std::map<Buffer, std::vector<Expr>>& strides,
                   const arith::Bounds& bounds, int64_t most_bytes) {
  const auto* to = loop.body.as<Store>();
  const auto extent = as_int(loop.extent);
  const auto copy = to && extent ? copy_of(*to) : std::nullopt;
  if (!copy) return 1;
  const Load& from = copy->from;
  const Expr target = consecutive(to->buffer, to->indices, loop.var, strides, bounds);
  const Expr source = consecutive(from.buffer, from.indices, loop.var, strides, bounds);
  if (!target || !source) return 1;
  const int64_t bytes = bit_width(to->buffer.dtype()) / 8;
  const auto fits = [&](int64_t lanes) {
    return *extent % lanes == 0 && is_aligned(target, lanes, loop.var, bounds) &&
           is_aligned(source, lanes, loop.var, bounds) &&
           (!copy->condition || is_uniform(copy->condition, lanes, loop.var, bounds));
  };
  int64_t lanes = std::min<int64_t>(most_bytes, 16) / bytes;
  while (lanes > 1 && !fits(lanes)) lanes /= 2;
  return std::max<int64_t>(lanes, 1);
}

}  // namespace tilewright::codegen
