// Conditions that a kernel need not test.
#pragma once

#include <set>

#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// Conditions whose bodies may run where they do not hold: the body writes elements of threads' own
/// arrays alone, which where the condition fails nothing ever sets and so nothing reads, and it
/// reads nothing but such arrays and shared memory, inside their bounds. Tiles that reach over the
/// end of a result then compute all elements alike and share what they load.
std::set<const If*> needless_tests(const Func& kernel);

}  // namespace tilewright::codegen
