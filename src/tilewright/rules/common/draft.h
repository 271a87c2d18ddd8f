// A schedule being written: the program so far and the steps that led to it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tilewright/rules/common/program_facts.h"
#include "tilewright/schedule/step.h"

namespace tilewright::rules {

/// Below this many operations a second thread costs more than it saves.
inline constexpr int64_t kParallelWork = 1 << 15;

/// Loops around a block in its present form, outermost first, with their extents.
struct LoopNest {
  std::vector<std::string> names;
  std::vector<int64_t> extents;  ///< 0 where not constant
};

/// Whether a loop or block called `name` is `whole` or was cut from it: `whole@1`.
bool is_piece(const std::string& name, const std::string& whole);

/// The block with the initial values of the sum `name`: `c.init` of `c`, `c.init@1` of `c@1`.
std::string init_of(const std::string& name);

/// Rules try steps on a draft; a step that does not apply leaves no trace.
class Draft {
 public:
  explicit Draft(Func func) : func_(std::move(func)) {}

  const Func& func() const { return func_; }
  schedule::Trace take() { return std::move(trace_); }

  /// Applies `step` if it is legal here.
  bool attempt(schedule::Step step);

  /// A point to return to when a group of steps turns out not to apply.
  struct Mark {
    Func func;
    size_t steps;
  };
  Mark mark() const { return {func_, trace_.size()}; }
  void revert(const Mark& to);

  /// Facts point into the present program: they are stale after the next step.
  std::vector<BlockFacts> blocks() const { return collect_blocks(func_); }
  LoopNest nest_of(const std::string& block) const;
  /// Loops around `block` inside `outer` (all of them if `outer` is not around it).
  LoopNest nest_inside(const std::string& block, const std::string& outer) const;
  /// Blocks that `block` has become: itself, or its parts after cuts.
  std::vector<std::string> pieces_of(const std::string& block) const;
  /// Loops that `loop` has become after cuts around or of it.
  std::vector<std::string> parts_of(const std::string& loop) const;

  /// Moves `loop` out of all loops around `block` but the first; true where it is there already.
  bool move_outward(const std::string& block, const std::string& loop);

  /// Blocks that need no further rule.
  std::set<std::string> done;
  /// Loops, outermost first, that a rule has placed around what others schedule.
  std::vector<std::string> kept;

 private:
  Func func_;
  schedule::Trace trace_;
};

}  // namespace tilewright::rules
