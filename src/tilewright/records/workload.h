// How records know a program.
#pragma once

#include <string>

#include "tilewright/ir/stmt.h"

namespace tilewright::records {

/// The program as records know it: its text, with the name `f`.
std::string workload_text(const Func& func);

/// Key of a workload, of its text: equal programs, names apart, have equal keys.
std::string workload_key(const std::string& text);

}  // namespace tilewright::records
