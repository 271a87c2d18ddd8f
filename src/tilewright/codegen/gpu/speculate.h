// Conditions that a kernel need not test.
#pragma once

#include <set>

#include "tilewright/ir/stmt.h"
#include "tilewright/lower/gpu_shared.h"

namespace tilewright::codegen {

/// Conditions whose bodies may run where they do not hold: the body writes elements of threads' own
/// arrays alone, which where the condition fails nothing ever sets and so nothing reads, and it
/// reads nothing but such arrays inside their bounds, and shared memory that there is, be it of
/// another row. Tiles that reach over the end of a result then compute all elements alike and share
/// what they load.
std::set<const If*> needless_tests(const Func& kernel, const lower::SharedPlan& shared);

}  // namespace tilewright::codegen
