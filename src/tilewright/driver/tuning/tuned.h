// Schedules that tuning found, for the compiler.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/records/grouped_adds.h"
#include "tilewright/records/store.h"

namespace tilewright::driver {

/// Who compiles, as records name it: records of another compiler do not count.
std::string compiler_key();

/// What the compiler asks a store for.
struct StoredRecords {
  compile::FindRecord schedules;
  compile::FindForm forms;
  compile::FindNetwork networks;
};
/// Answers from the store at `path`, or the user's own where that is empty (empty functions, if
/// there is none). `target_keys`: as in records, best first.
///   errors: Io (a named store that is not there), Package (of another schema), Unreachable (a
///   server).
Result<StoredRecords> stored_records(const std::string& path,
                                     const std::vector<std::string>& target_keys);
/// The same from a store that is open.
StoredRecords answers_of(std::shared_ptr<const records::Store> store,
                         const std::vector<std::string>& target_keys);
/// The key of kernels for a CPU.
std::string cpu_key(const hw::CpuTarget& target, int threads);
/// The keys that a CPU's records may have: its own, then that of its kind (`cpu:znver4:2`), by
/// which records were kept before machines had fingerprints. Those of a mere level of the
/// architecture fit no machine in particular and are asked for by the targets of such names only.
std::vector<std::string> cpu_keys(const hw::CpuTarget& target, int threads);
/// The keys of all that code for a target consists of: of the processor's kernels and, for
/// accelerators, of layers. GPUs have keys by device (gpu_kernel.h).
std::vector<std::string> record_keys(const compile::CompileOptions& options);

/// Tells the user now and then that the store does not answer: a search goes on, its end waits.
records::GroupedAdds::Away say_away();

/// The end of a search: adds what it came to, and what is not in the store yet. Waits for a server
/// that does not answer, after an interrupt only shortly. errors: of the store.
Status keep_verdicts(records::GroupedAdds& kept, const std::vector<records::Record>& verdicts,
                     bool interrupted);

/// Kernels, and layers of launches, for which there is a record.
struct RecordedKernels {
  int64_t measured = 0, faster = 0;  ///< all; those where another schedule won against the default
  int64_t launches = 0;              ///< planned as a whole, for which another plan won
};
RecordedKernels recorded_kernels(const compile::CompiledModel& model);
/// One line for the user about them; nothing where there are no records.
void say_tuned(const compile::CompiledModel& model);
/// In what the nearest of `records` differs from `here`, a record of what is compiled for, in
/// words: target, processor, machine, threads or compiler. Empty: there is none, or one that fits.
std::string nearest_difference(const std::vector<records::Record>& records,
                               const records::Record& here);
/// One line where the store at `path` has winners for kernels of `model`, none of which count here.
/// `device`: the GPU, as in SubjectOptions.
void say_elsewhere(const compile::CompiledModel& model, const compile::CompileOptions& options,
                   const std::string& path, const std::string& device);

}  // namespace tilewright::driver
