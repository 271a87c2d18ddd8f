// Runs a Program: a session owns the memory of one execution at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/base/file.h"
#include "tilewright/runtime/launch.h"
#include "tilewright/runtime/program.h"
#include "tilewright/runtime/thread_pool.h"

namespace tilewright::runtime {

class Package;

/// The compiled code of a symbol, or nullptr.
using KernelLookup = std::function<tw_kernel(const std::string& symbol)>;

struct SessionOptions {
  int threads = 0;                         ///< 0: default_threads()
  std::shared_ptr<ThreadPool> pool;        ///< shared with other sessions; overrides `threads`
  bool flush_denormals = false;            ///< treat denormal floats as zero: faster, not IEEE
  std::shared_ptr<const void> keep_alive;  ///< owner of the compiled code, kept with the session
  LaunchLoader load_launch;                ///< without it a program for another device is refused
  LaunchCode launch_code;                  ///< set by the package where there is one
};

/// Times of one step over all runs since the last reset.
struct StepProfile {
  std::string name;
  std::string callee;  ///< kernel symbol, host function or launch
  int64_t calls = 0;
  int64_t total_ns = 0, min_ns = 0, last_ns = 0;
};

/// One instance of a program: arena, workspace, bound tensors. Sessions share code and weights;
/// each may be used by one thread at a time.
class Session {
 public:
  /// `weights` must be as long as the program says and is kept mapped as long as the session.
  /// errors: Package (missing kernel, wrong weights), Unsupported (unknown host function),
  /// Capacity.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Program> program,
                                                 const KernelLookup& lookup, MappedFile weights,
                                                 const SessionOptions& options = {});
  /// The same from a package, which stays open as long as the session.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Package> package,
                                                 const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Program& program() const;
  int threads() const;

  /// Copies `value`. Along a dynamic axis it may be smaller than the program's bound.
  /// errors: Invalid (name with the nearest one, dtype, shape).
  Status set_input(const std::string& name, const Array& value);
  /// Reads the caller's memory at every later run; unaligned memory is copied then.
  Status bind_input(const std::string& name, Array value);
  /// Writes into the caller's memory at every later run. requires: the output's full shape.
  /// errors: Invalid.
  Status bind_output(const std::string& name, Array value);

  /// Forgets the caller's memory: bound inputs count as never set, bound outputs are written to the
  /// session's memory again.
  void unbind();

  /// errors: Invalid (inputs that were never set), Usage (values that a step does not take: an
  /// index outside its axis), Package (steps that do not fit together). The session stays usable.
  Status run();

  /// The output with its real shape: a view that the next run overwrites (a copy where the dynamic
  /// axis is not the outermost). errors: Invalid (unknown name, no run yet,
  /// written to memory that is no longer bound).
  Result<Array> get_output(const std::string& name) const;

  /// One entry per step, in program order.
  const std::vector<StepProfile>& profile() const;
  void reset_profile();

 private:
  Session();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::runtime
