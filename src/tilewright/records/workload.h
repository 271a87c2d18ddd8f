// How records know a program.
#pragma once

#include <string>

#include "tilewright/ir/stmt.h"

namespace tilewright::records {

/// The program as records know it: its text, with the name `f`.
std::string workload_text(const Func& func);

}  // namespace tilewright::records
