// What parsing and printing of sketches share.
#pragma once

#include <array>
#include <string_view>

#include "tilewright/schedule/sketch.h"

namespace tilewright::schedule {

/// How an operator is written: between its operands, binding tighter with a higher level, or, at
/// level 0, as a function.
struct OpText {
  SketchExpr::Op op;
  std::string_view text;
  int level;
};
inline constexpr OpText kOps[] = {
    {SketchExpr::Op::Or, "||", 1},   {SketchExpr::Op::And, "&&", 2},
    {SketchExpr::Op::Eq, "==", 3},   {SketchExpr::Op::Ne, "!=", 3},
    {SketchExpr::Op::Le, "<=", 3},   {SketchExpr::Op::Ge, ">=", 3},
    {SketchExpr::Op::Lt, "<", 3},    {SketchExpr::Op::Gt, ">", 3},
    {SketchExpr::Op::Add, "+", 4},   {SketchExpr::Op::Sub, "-", 4},
    {SketchExpr::Op::Mul, "*", 5},   {SketchExpr::Op::Div, "/", 5},
    {SketchExpr::Op::Mod, "%", 5},   {SketchExpr::Op::Min, "min", 0},
    {SketchExpr::Op::Max, "max", 0}, {SketchExpr::Op::CeilDiv, "ceil_div", 0},
};
inline constexpr int kOpLevels = 5;

inline const OpText* find_op(SketchExpr::Op op) {
  for (const OpText& entry : kOps)
    if (entry.op == op) return &entry;
  return nullptr;
}

/// By the value of SketchDecision::Kind.
inline constexpr std::string_view kKindNames[] = {"split", "tile", "ordered", "ring", "choice"};
/// Names that must be quoted to be words.
inline constexpr std::string_view kSketchWords[] = {"min", "max", "ceil_div", "extent", "has"};

inline int64_t part_count(const SketchDecision& d) {
  const bool factors =
      d.kind == SketchDecision::Kind::Split || d.kind == SketchDecision::Kind::Tile;
  return factors ? d.parts : static_cast<int64_t>(d.values.at(0).size());
}

/// Whether `step` has the name and the fields of one in step.h, as far as `sample` shows.
Status check_step(const SketchStep& step, const std::vector<Words>& sample);

}  // namespace tilewright::schedule
