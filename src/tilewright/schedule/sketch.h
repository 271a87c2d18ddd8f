// A sketch: a trace with holes. Decisions say what may be chosen, steps refer to what was chosen.
//
//   decide k: split C.k into 4                    # ordered factorisations of the loop's extent
//   decide w: tile C.w into 3                     # the last factor is free, the last tile partial
//   decide unroll: ordered [1, 4, 16]             # values in a row
//   decide at: choice [C.k, C.w]                  # values without an order
//   decide deep: ring [[0, 1], [16, 1]] when at in [C.k]
//   split(loop=C.k, factor=$k.1 * $k.2 * $k.3)    # parts of a value count from 0
//   if $unroll >= 4 { unroll(loop=C.r) } else { compute_at(block=P, loop=$at) }
//
// Fields of steps and conditions are expressions: integers, words, `$decision`, `$decision.part`,
// `extent(LOOP)` and `has(BLOCK)` (1 or 0) of the program as given, `+ - * / %`, comparisons,
// `&& ||`, `min`, `max`, `ceil_div`. A split by a factor of 1, or by the whole extent, makes a loop
// of one iteration, which later steps may name as any other and which lowering drops.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/schedule/step.h"

namespace tilewright::schedule {

/// A number or a name.
using Word = std::variant<int64_t, std::string>;
/// One value of a decision: its parts.
using Words = std::vector<Word>;

struct SketchDecision {
  enum class Kind { Split, Tile, Ordered, Ring, Choice };
  std::string name;
  Kind kind = Kind::Choice;
  Word extent = int64_t{1};   ///< Split, Tile: a number, or a loop of the program as given
  int64_t parts = 1;          ///< Split, Tile: factors, the outermost first
  std::vector<Words> values;  ///< of the other kinds
  int parent = -1;            ///< asked only where this earlier decision ...
  std::vector<Words> when;    ///< ... has one of these values
};

struct SketchExpr {
  enum class Op {
    Literal,
    Hole,
    Extent,
    Has,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Min,
    Max,
    CeilDiv,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or
  };
  Op op = Op::Literal;
  Word value = int64_t{0};     ///< of Literal; of Extent a loop's name, of Has a block's
  int decision = 0, part = 0;  ///< of Hole
  std::vector<SketchExpr> args;
};

struct SketchField {
  std::string name;
  bool list = false;
  std::vector<SketchExpr> values;
};

/// A step, or, if it has a condition, steps to take where that is not 0 and others where it is.
struct SketchStep {
  std::string name;
  std::vector<SketchField> fields;
  std::vector<SketchExpr> condition;  ///< none or one
  std::vector<SketchStep> then_steps, else_steps;
};

struct Sketch {
  std::vector<SketchDecision> decisions;
  std::vector<SketchStep> steps;
};

/// errors: Parse with line and column: syntax, unknown decisions and parts, steps or fields that do
/// not exist.
Result<Sketch> parse_sketch(std::string_view text);
/// Parses back to the same sketch.
std::string print(const Sketch& sketch);

/// What names in a sketch stand for: `main` for `conv`, so that `main.k` is the loop `conv.k`.
using Roles = std::map<std::string, std::string>;

/// `sketch` with the extents of `func`'s loops in place of their names, and `roles` in place of
/// theirs.
///   errors: Invalid for loops that `func` does not have or whose extent is not constant.
Result<Sketch> bind(const Sketch& sketch, const Func& func, const Roles& roles = {});

/// The steps with `point[i]` chosen in decision i.
///   errors: Invalid for numbers out of range, divisions by zero, words where numbers must be.
Result<Trace> instantiate(const Sketch& sketch, const std::vector<Words>& point);

std::string print(const Words& value);
std::string_view name(SketchDecision::Kind kind);

}  // namespace tilewright::schedule
