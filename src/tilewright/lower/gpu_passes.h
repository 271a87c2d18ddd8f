// Shared by the passes for GPUs, which lower/passes.h declares.
#pragma once

#include <map>

#include "tilewright/ir/stmt.h"
#include "tilewright/lower/gpu.h"

namespace tilewright::lower {

using ThreadLoops = std::map<Var, const For*>;
Stmt make_sync();
/// A call of `name`, an intrinsic without effect that orders copies or products (`sync.wait`), with
/// `values` for its `scalars`.
Stmt make_sync_call(const char* name, std::vector<Scalar> scalars, std::vector<Expr> values);
/// Whether `s` or anything inside it satisfies the predicate.
bool contains(const Stmt& s, bool (*predicate)(const Stmt&));

}  // namespace tilewright::lower
