// Which graph passes run.
#pragma once

#include <string>
#include <vector>

#include "tilewright/compile/options.h"

namespace tilewright::compile {

/// The default graph passes but those of `left_out`, comma-separated. Without fusion batch
/// normalisation stays a kernel of its own, too.
std::string pass_names(const CompileOptions& options, const std::vector<std::string>& left_out);

}  // namespace tilewright::compile
