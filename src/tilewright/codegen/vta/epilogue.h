// Instruction selection: an expression over accumulators becomes steps on one
// accumulator.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tilewright/accel/vta/isa.h"
#include "tilewright/codegen/stream/concrete.h"

namespace tilewright::codegen::vta_code {

using stream::Env;
using stream::Range;

/// One instruction on all elements of the target.
struct AluStep {
  enum class Kind {
    Reset,      ///< target = 0
    Immediate,  ///< target = op(target, immediate)
    Register,   ///< target = op(target, load)
    Diagonal,   ///< target += weight * load (of the input memory), `repeat` times
  };
  Kind kind = Kind::Reset;
  vta::AluOp op = vta::AluOp::Add;
  int16_t immediate = 0;
  const Load* load = nullptr;
  int64_t weight = 0, repeat = 1;
};

struct AluPlanner {
  const vta::Config& config;
  const Env& env;
  /// Whether a load is of the target itself, which then is where the value
  /// starts from.
  std::function<bool(const Load&)> is_target;

  /// Steps after which the target holds `e`. Narrower integers count as what a
  /// store would keep. errors: Unsupported, with the operation that has no
  /// instruction.
  Result<std::vector<AluStep>> plan(const Expr& e) const;
};

/// i32(load of vta.inp) times a constant.
struct InputTerm {
  const Load* load = nullptr;
  int64_t coefficient = 1;
};
std::optional<InputTerm> input_term(const Expr& e, const Env& env);

/// `e` without the selects that the environment decides.
Expr decided(const Expr& e, const Env& env);

}  // namespace tilewright::codegen::vta_code
