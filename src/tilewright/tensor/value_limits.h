// Operands whose values, known only at run time, decide where an operator reads or writes: indices
// and lengths, and what they must lie between. The importer puts a CheckRange before each.
#pragma once

#include <string>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

struct ValueLimits {
  size_t input = 0;
  std::string what;  ///< `index`, `length`, `position`
  /// Element i must be in [least[i % n], most[i % n]]: one pair for all, or one for each entry of
  /// an index tuple.
  std::vector<int64_t> least, most;
};

/// The limits of a call's operands; none for operators that take any value. requires: `infer`
/// accepts the call.
std::vector<ValueLimits> value_limits(const OpCall& call);

/// Names of the ONNX operators with such operands, sorted.
std::vector<std::string> ops_with_limits();

/// Adds tilewright::CheckRange: hands on its input, integers, after every element was found between
/// attributes `least` and `most`; `what` and `of` say in a message what they are. A second
/// input, one bool, says whether it looks at all.
void add_check_op(std::vector<OpDef>& table);

}  // namespace tilewright::tensor
