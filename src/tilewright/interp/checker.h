// The checking mode: which iteration touched which element (docs/ir.md, section 7). Private to
// interp.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/interp/machine.h"

namespace tilewright::interp {

using TaskId = uint32_t;  ///< 0: none, 1: the whole program

/// What is known about one element. One reader and one atomic updater suffice: in a depth-first
/// fork-join execution, an older one is replaced only if it is ordered before the newer.
/// source: Feng and Leiserson, "Efficient detection of determinacy races in Cilk programs", 1997.
struct Shadow {
  TaskId writer = 0, reader = 0, updater = 0;
  const std::string* writer_block = nullptr;  ///< of the last write
  const std::string* set_block = nullptr;     ///< of the `=` store that gave it its value
  bool defined = false;
};

/// Follows a run and collects findings. A task is one iteration of a concurrent loop; the program
/// is a tree of them, and two tasks are unordered where they leave a common ancestor through two
/// iterations of one loop.
class Checker {
 public:
  explicit Checker(const Options& options) : options_(options), rng_(options.seed) {}

  void read(Machine& m, const Element& access, int64_t offset);
  void write(Machine& m, const Element& access, int64_t offset, Combine combine, bool atomic);
  void out_of_bounds(const std::string& text);
  /// An element of an output that nothing wrote.
  void unwritten(const Buffer& buffer, const BufferState& state);

  /// Indices 0..extent-1 in random order.
  std::vector<int64_t> shuffled(int64_t extent);
  /// A new execution of a concurrent loop.
  uint32_t enter_loop(const For& loop);
  TaskId enter_iteration(uint32_t instance, int64_t iteration);
  void leave_iteration(TaskId outer) { current_ = outer; }

  bool full() const { return findings_.size() >= options_.max_findings; }
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  struct Task {
    TaskId parent;
    uint32_t instance;  ///< execution of the loop this is an iteration of
    uint32_t depth;
    int64_t iteration;
  };
  /// Two iterations of one execution of a loop; `instance` 0 means that the tasks are ordered.
  struct Conflict {
    uint32_t instance = 0;
    int64_t first = 0, second = 0;
    explicit operator bool() const { return instance != 0; }
  };
  Conflict unordered(TaskId a, TaskId b) const;
  void race(Machine& m, const Element& access, const Conflict& conflict, const char* earlier,
            const char* now);
  /// Keeps the first finding of each kind per block and buffer.
  void report(Machine& m, const Element& access, Finding::Kind kind, const std::string& detail);

  const Options& options_;
  Rng rng_;
  std::vector<Task> tasks_ = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  std::vector<const For*> instances_ = {nullptr};
  TaskId current_ = 1;
  std::set<std::string> seen_;
  std::vector<Finding> findings_;
};

}  // namespace tilewright::interp
