// One kernel in a worker: its operands, its right result, and schedules of it as running code.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/hw/targets.h"
#include "tilewright/measure/job.h"
#include "tilewright/measure/worker.h"
#include "tilewright/runtime/thread_pool.h"

namespace tilewright::measure {

/// Why a candidate has no cost.
struct Failure {
  OutcomeKind kind;
  std::string reason;
};
template <class T>
using Attempt = tl::expected<T, Failure>;

/// `place: what: why` on one line.
std::string one_line(const Error& error);

/// A schedule as native code, with memory of its own for what it keeps to itself; or as code on a
/// device.
struct BuiltKernel {
  runtime::CompiledKernel code;
  Array workspace;
  std::shared_ptr<DeviceKernel> device;
  int64_t calls = 1;  ///< of one reading
};

/// Threads for the kernels of all tasks that a process has loaded, of which one runs at a time: a
/// network's kernels with threads of their own would be more than a confined process may have.
class SharedThreads {
 public:
  /// The pool of so many threads; tasks of another number may still have theirs.
  std::shared_ptr<runtime::ThreadPool> get(int threads);

 private:
  std::shared_ptr<runtime::ThreadPool> last_;
};

class MeasuredTask {
 public:
  /// Makes operands of small integers, the same in every worker.
  /// errors: Parse; Unsupported (sizes known only at run time); Device (not of this machine).
  static Result<std::unique_ptr<MeasuredTask>> create(const TaskJob& job, SharedThreads& threads,
                                                      const CompileFor& compile,
                                                      const LoadForDevice& load = {});

  bool on_device() const { return !job_.device.empty(); }
  /// CPUs that a call keeps busy.
  int threads() const { return static_cast<int>(job_.threads); }
  /// Values by parameter, without shape.
  const std::vector<Array>& operands() const { return operands_; }
  /// Scheduled by `trace` (printed), lowered and compiled. errors: Invalid, CompileError.
  Attempt<BuiltKernel> build(const std::string& trace) const;

  /// Runs the program as it is written; its results are the right ones. For a GPU it runs on this
  /// machine, or on the GPU with a thread for each result where nothing compiles for this machine.
  /// errors: as `build`.
  Attempt<std::vector<Array>> reference();
  void set_reference(std::vector<Array> results) { reference_ = std::move(results); }
  /// Zeros, of the results' types and sizes.
  std::vector<Array> blank_results() const;

  /// One call, whose results are compared with the right ones. units: ns. errors: WrongResult.
  Attempt<double> checked_call(const BuiltKernel& kernel);
  /// Time of a call, in a row of `kernel.calls`. units: ns.
  double reading(const BuiltKernel& kernel);
  /// So many calls that a reading lasts `seconds`.
  void set_calls(BuiltKernel& kernel, double seconds);

 private:
  MeasuredTask(TaskJob job, Func func, hw::Target target, SharedThreads& threads,
               const CompileFor& compile, const LoadForDevice& load);
  double reading_of(const BuiltKernel& kernel, int64_t calls);
  double call(const BuiltKernel& kernel);
  Attempt<BuiltKernel> thread_per_result() const;
  void restore();
  Attempt<BuiltKernel> compile_scheduled(const Func& scheduled, bool on_device) const;

  TaskJob job_;
  Func func_;
  hw::Target target_;  ///< what runs the schedules
  const CompileFor& compile_;
  const LoadForDevice& load_;
  std::shared_ptr<runtime::ThreadPool> pool_;
  std::vector<Array> operands_;        ///< by parameter
  std::map<size_t, Array> originals_;  ///< of operands that a call changes
  std::vector<size_t> results_;        ///< parameters that hold results
  std::vector<Array> reference_;       ///< of results_
  std::vector<void*> buffers_;
};

}  // namespace tilewright::measure
