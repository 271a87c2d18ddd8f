// The reference run: every node of the graph as imported, one by one, by the interpreter.
#pragma once

#include <map>
#include <string>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::driver {

/// Value of every value of `graph` by name (constants apart), for the given inputs.
/// errors: Invalid (a missing input), Interrupted, what the interpreter reports, with the node.
Result<std::map<std::string, Array>> run_reference(const graph::Graph& graph,
                                                   const std::map<std::string, Array>& inputs);

/// The outputs of a tensor expression by name. errors: what the interpreter reports, Interrupted.
Result<std::map<std::string, Array>> run_reference(const Func& func,
                                                   const std::map<std::string, Array>& inputs);

}  // namespace tilewright::driver
