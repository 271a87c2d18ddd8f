// Operators that loops express badly: executed by plain C++ on host arrays (TopK,
// NonMaxSuppression, ...).
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/array.h"

namespace tilewright::runtime {

/// Runs host operator `name` with attributes as a JSON object. Absent inputs are empty handles.
/// `Copy` gives its input; as a step of a program it reshapes to the step's output.
/// `CheckRange` gives its input too, after a look at every element.
/// Outputs have their real shape (data-dependent axes included). errors: Unsupported (no such
/// name), Invalid (types and shapes), Usage (values).
Result<std::vector<Array>> run_host_op(const std::string& name, const std::string& attrs,
                                       const std::vector<Array>& inputs);
/// All names, sorted.
std::vector<std::string> host_op_names();

}  // namespace tilewright::runtime
