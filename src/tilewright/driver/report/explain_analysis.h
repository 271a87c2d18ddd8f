// explain --analysis: the loops of every kernel as schedule spaces see them.
#pragma once

#include <string>

#include "tilewright/driver/subject.h"

namespace tilewright::driver {

/// Prints the static analysis of each kernel of `subject`, or of the one that `node` belongs to;
/// compiles none. errors: Usage (no such node), what the passes report.
Result<int> explain_analysis(const Subject& subject, const compile::CompileOptions& options,
                             const std::string& node, bool as_json);

}  // namespace tilewright::driver
