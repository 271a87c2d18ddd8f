// Shared by the passes for GPUs, which lower/passes.h declares.
#pragma once

#include <map>

#include "tilewright/ir/stmt.h"
#include "tilewright/lower/gpu.h"

namespace tilewright::lower {

using ThreadLoops = std::map<Var, const For*>;
Stmt make_sync();
/// Whether `s` or anything inside it satisfies the predicate.
bool contains(const Stmt& s, bool (*predicate)(const Stmt&));

}  // namespace tilewright::lower
