// From a network of layers to a program of the DPU.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/program.h"
#include "tilewright/codegen/dpu/network.h"
#include "tilewright/codegen/dpu/way.h"

namespace tilewright::dpu {

/// What became of a layer.
struct LayerPlan {
  std::string name;
  std::string with;  ///< layers that are made in one pass with it, or empty
  std::string home;  ///< where its result is: `FM0`, `DDR`, ...
  std::string how;   ///< tiles of rows, columns and weights, in words
};
/// A way that was tried.
struct Attempt {
  Way way;
  std::string what;     ///< order, homes, fusions: the way in words
  std::string why;      ///< why it failed; empty: it did not
  uint64_t cycles = 0;  ///< by the cycle simulator, where it did not
};

struct Compiled {
  Program program;
  std::vector<LayerPlan> layers;
  std::vector<Attempt> attempts;  ///< in the order of being tried
  Way way;                        ///< that won
};

struct CompileOptions {
  /// Stops the search for better plans: asked between attempts. errors of it are handed on.
  std::function<Status()> cancelled;
  int most_attempts = 40;
  /// What tuning found: tried alone, and all others only if it does not work.
  std::optional<Way> way;
  int only = -1;  ///< the attempt of this number wins, if it works; for tests of every way
};

/// errors: Unsupported (`supports`), Capacity (a layer that fits no memory in any split: tensor,
/// bytes needed and there, what was tried).
Result<Compiled> compile(const Network& network, const Config& config,
                         const CompileOptions& options = {});

}  // namespace tilewright::dpu
