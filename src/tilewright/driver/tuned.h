// Schedules that tuning found, for the compiler.
#pragma once

#include <string>

#include "tilewright/driver/compile.h"

namespace tilewright::driver {

/// Who compiles, as records name it: records of another compiler do not count.
std::string compiler_key();

/// Answers from the store at `path`, or the user's own where that is empty (a function that finds
/// nothing, if there is none).
///   errors: Io (a named store that is not there), Package (of another schema).
Result<FindRecord> stored_schedules(const std::string& path, const hw::CpuTarget& target,
                                    int threads);

/// Kernels whose schedules come from records.
int64_t tuned_kernels(const CompiledModel& model);
/// One line for the user about them; nothing where there are no records.
void say_tuned(const CompiledModel& model);

}  // namespace tilewright::driver
