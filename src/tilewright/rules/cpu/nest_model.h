// The time of any nest of loops around a tile of sums: for schedules that were not made by rule.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/cost/contraction.h"
#include "tilewright/cost/prediction.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::rules {

/// Loops around a tile that is written out, axes numbered as those of a contraction.
struct NestForm {
  std::vector<cost::NestLoop> nest;  ///< outermost first
  cost::Sizes tile;                  ///< iterations of each axis inside all of `nest`
  int64_t pieces = 1;                ///< iterations of the parallel loops
  bool in_registers = true;          ///< sums stay in registers while the reduction runs
};

/// units: ns with `threads` workers.
cost::Prediction predict_nest(const cost::Contraction& contraction, const NestForm& form,
                              const hw::CpuTarget& target, int threads);

/// The time of a schedule of `func` whose main block is no contraction of vectors: its arithmetic
/// one number at a time, its operands once from memory. units: ns.
cost::Prediction predict_plain(const Func& func, const hw::CpuTarget& target, int threads);

/// The form that the reduction `block` has in a scheduled program; absent if it is not there whole.
std::optional<NestForm> nest_form(const Func& scheduled, const std::string& block,
                                  const cost::Contraction& contraction);

}  // namespace tilewright::rules
