// How one kernel is computed, and where a compiler looks for schedules that tuning found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/cost/decision.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/records/record.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/schedule/step.h"

namespace tilewright::compile {

/// The record whose schedule a kernel shall have, given its Func (stage Tensor); absent: the rules
/// choose. May be called by several threads at once.
using FindRecord = std::function<std::optional<records::Record>(const Func& func)>;

/// One distinct kernel, which several steps of a program may share, or a layer of an accelerator.
struct KernelReport {
  std::string symbol;              ///< empty: a layer, part of an instruction stream
  std::vector<std::string> steps;  ///< names of the steps that call it
  Func func;                       ///< stage Tensor
  schedule::Trace trace;
  Func scheduled;
  rules::RuleReport rules;                ///< who chose it, where a rule did
  cost::RuleDecision decision;            ///< why this schedule, where the rules chose it
  std::optional<records::Record> record;  ///< where tuning chose it
  double predicted = 0;                   ///< layers of accelerators. units: cycles
};

}  // namespace tilewright::compile
