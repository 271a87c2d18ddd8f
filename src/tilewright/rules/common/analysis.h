// Static analysis of a tensor program: the numbers from which spaces of schedules are made.
#pragma once

#include <string>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright::rules {

/// One loop of a node.
struct AnalysedLoop {
  std::string name;
  int64_t trips = 0;  ///< 0 where not constant
  bool reduces = false;
};

/// A node of the mini-graph: the perfect nest that makes one tensor. A reduction and the block that
/// sets its initial values are one node.
struct AnalysedNode {
  std::string name, tensor;
  std::vector<AnalysedLoop> loops;     ///< in order; spatial ones index the result
  std::vector<std::string> producers;  ///< nodes whose results it reads
  std::vector<std::string> consumers;  ///< nodes that read its result
  bool inlinable = false;              ///< sums nothing and is no result of the program
  double operations = 0;               ///< per evaluation of the program; a multiply-add is two

  int64_t spatial() const;
  int64_t reduce() const;
};

/// source: FlexTensor (ASPLOS 2020), section 4.1.
struct Analysis {
  std::vector<AnalysedNode> nodes;  ///< producers before consumers
  int64_t inputs = 0, outputs = 0;  ///< tensors of the program
  int64_t spatial = 0, reduce = 0;  ///< loops of all nodes together
};

/// requires: `func` at stage Tensor.
Analysis analyse(const Func& func);

/// A table for people.
std::string to_text(const Analysis& analysis);

}  // namespace tilewright::rules
