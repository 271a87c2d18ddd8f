// What a session holds; shared by the two files that implement it.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/runtime/executor.h"

namespace tilewright::runtime {

struct Session::State {
  /// Where a value is during a run.
  struct Slot {
    std::shared_ptr<void> owner;
    char* data = nullptr;  ///< never null once placed, so that empty tensors are not absent ones
    char* home = nullptr;  ///< the session's own memory, for inputs and outputs
    Shape shape;           ///< real
  };
  struct Input {
    bool set = false;
    Array bound;  ///< the caller's memory, or an empty handle
    bool copy = false;
  };
  struct Output {
    Array bound;
    bool copy = false;
    bool elsewhere = false;  ///< the last run wrote to memory that was unbound since
  };
  struct Step {
    tw_kernel kernel = nullptr;  ///< nullptr: a host function or a launch
    std::shared_ptr<Launch> launch;
    size_t first_pointer = 0;
  };

  std::shared_ptr<const Program> program;
  std::shared_ptr<const void> keep_alive;
  MappedFile weights;
  std::shared_ptr<void> arena, interface, workspace;
  std::shared_ptr<ThreadPool> pool;
  bool flush_denormals = false;
  std::vector<Slot> slots;      // by value id
  std::vector<Input> inputs;    // by position in program->inputs
  std::vector<Output> outputs;  // by position in program->outputs
  std::vector<Step> steps;
  std::vector<void*> pointers;  // arguments of all steps, one after the other
  std::vector<StepProfile> profile;
  /// By value id: for a value that no step writes, a dynamic one of the arena or a view, the one
  /// written to its memory; its extent is that one's. Otherwise -1.
  std::vector<int> alias_of;
  /// By value id: the step that reads last what host functions make for host functions, which stays
  /// where it was made until then. -1: the value lies in the session's own memory.
  std::vector<int> held_until;
  bool pointers_stale = true;
  bool ran = false;

  const ValueSpec& spec(int id) const { return program->values[static_cast<size_t>(id)]; }
  Slot& slot(int id) { return slots[static_cast<size_t>(id)]; }
  const Slot& slot(int id) const { return slots[static_cast<size_t>(id)]; }

  Status prepare_steps(const KernelLookup& lookup, const SessionOptions& options);
  Result<std::shared_ptr<Launch>> load_launch(const std::string& name,
                                              const SessionOptions& options) const;
  Status allocate_memory();
  void place_values();
  Result<size_t> find(const std::vector<int>& ids, const char* what, const std::string& name) const;
  Status check_inputs_set() const;
  void resolve_pointers();
  void stage_inputs();
  void deliver_outputs();
  void find_aliases();
  void find_held();
  /// Puts a held value back into the session's memory, without its elements.
  void let_go(int id);
  Array dense(int id) const;
  void adopt_extent(int to, int from);
  void propagate_extents(const StepSpec& step);
  /// `elsewhere`: the result lies in memory that nobody else writes.
  Status store(int id, const Array& result, bool elsewhere = false);
  Status run_copy_step(const StepSpec& step);
  Status run_host_step(const StepSpec& step);
  Status run_launch_step(const StepSpec& step, Launch& launch);
  /// `clock`: when the step before ended; becomes the time at which this one did. units: ns
  Status run_step(size_t index, int64_t& clock);
  Status run_steps();
};

}  // namespace tilewright::runtime
