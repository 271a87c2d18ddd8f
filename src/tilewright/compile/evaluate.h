// Values of operators at compile time: what constant folding and weight packing ask for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/compile/observer.h"
#include "tilewright/graph/ir/graph.h"

namespace tilewright::compile {

/// Attributes as the JSON object host functions read.
std::string attrs_to_json(const tensor::Attrs& attrs);

/// Evaluates by the reference interpreter; host operators by their runtime function.
Result<std::vector<Array>> interpret_op(const tensor::OpCall& call,
                                        const std::vector<Array>& inputs);

/// Evaluates small operators by the interpreter and large ones by compiled code.
graph::Evaluate make_evaluate(const Observer& observer = {});

}  // namespace tilewright::compile
