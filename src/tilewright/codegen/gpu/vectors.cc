#include "tilewright/codegen/gpu/vectors.h"

#include <algorithm>

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
  const arith::Affine sum = arith::as_affine(offset);
  if (sum.coefficient(var) != 1) return {};
  for (const auto& [term, coefficient] : sum.terms)
    if (!term.as<VarRef>() && uses(term, var)) return {};
  return offset;
}

}  // namespace

int64_t copy_lanes(const For& loop, const std::map<Buffer, std::vector<Expr>>& strides,
                   const arith::Bounds& bounds, int64_t most_bytes) {
  const auto* to = loop.body.as<Store>();
  const auto extent = as_int(loop.extent);
  if (to == nullptr || !extent || to->combine != Combine::Set) return 1;
  const auto* from = to->value.as<Load>();
  if (from == nullptr || from->buffer.dtype() != to->buffer.dtype()) return 1;
  const Expr target = consecutive(to->buffer, to->indices, loop.var, strides, bounds);
  const Expr source = consecutive(from->buffer, from->indices, loop.var, strides, bounds);
  if (!target || !source) return 1;
  const int64_t bytes = bit_width(to->buffer.dtype()) / 8;
  const auto fits = [&](const Expr& offset, int64_t lanes) {
    const Expr first = substitute(offset, {{loop.var, int_imm(0)}});
    return arith::prove(eq(first % lanes, int_imm(0)), bounds);
  };
  int64_t lanes = std::min<int64_t>(most_bytes, 16) / bytes;
  while (lanes > 1 && !(*extent % lanes == 0 && fits(target, lanes) && fits(source, lanes)))
    lanes /= 2;
  return std::max<int64_t>(lanes, 1);
}

}  // namespace tilewright::codegen
