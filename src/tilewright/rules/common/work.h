// How much arithmetic a Func asks for, counted from its blocks.
#pragma once

#include "tilewright/ir/stmt.h"
#include "tilewright/rules/common/program_facts.h"

namespace tilewright::rules {

/// units: operations; a multiply-add is two, a function of numbers one.
struct Work {
  double operations = 0;
  DType dtype = DType::F32;  ///< of the operands where most of it happens: decides the peak
};

/// Arithmetic on values at stage Tensor; index expressions and conditions do not count, of a select
/// the longer side does. Blocks with a symbolic extent count as nothing.
Work work_of(const Func& func);
/// Those of one block, counted alike.
double operations_of(const BlockFacts& block);

}  // namespace tilewright::rules
