// Schedules that tuning found, for the compiler.
#pragma once

#include <string>

#include "tilewright/driver/compile.h"

namespace tilewright::driver {

/// Who compiles, as records name it: records of another compiler do not count.
std::string compiler_key();

/// What the compiler asks a store for.
struct StoredRecords {
  FindRecord schedules;
  FindForm forms;
};
/// Answers from the store at `path`, or the user's own where that is empty (empty functions, if
/// there is none). `target_key`: as in records.
///   errors: Io (a named store that is not there), Package (of another schema).
Result<StoredRecords> stored_records(const std::string& path, const std::string& target_key);
/// The same from a store that is open.
StoredRecords answers_of(const tune::RecordStore& store, const std::string& target_key);
/// The key of kernels for a CPU.
std::string cpu_key(const hw::CpuTarget& target, int threads);

/// Kernels, and layers of launches, for which there is a record.
struct RecordedKernels {
  int64_t measured = 0, faster = 0;  ///< all; those where another schedule won against the default
};
RecordedKernels recorded_kernels(const CompiledModel& model);
/// One line for the user about them; nothing where there are no records.
void say_tuned(const CompiledModel& model);

}  // namespace tilewright::driver
