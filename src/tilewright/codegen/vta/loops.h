// Which loops of a nest become the two hardware loops, and which become
// micro-ops.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "tilewright/accel/vta/isa.h"
#include "tilewright/codegen/stream/nest.h"

namespace tilewright::codegen::vta_code {

using stream::ConcreteNest;
using stream::Form;
using stream::kMaxLoops;

/// A compute nest: forms are destination, source and (GEMM) weight, in
/// elements. Steps may run in any order.
struct StepNest {
  ConcreteNest nest;
  bool gemm = false;
  /// Steps of the first iteration of loop `first_of` (all steps if -1) replace
  /// what is there; that loop is then the outer hardware loop. requires: those
  /// steps meet each destination once.
  bool replace = false;
  int first_of = -1;
};

/// The last argument: whether the first iteration of the outer loop replaces.
using Issue = std::function<Status(std::vector<vta::Uop>, const vta::Loops&, bool)>;

/// Splits nests into instructions. Equal destinations are at least three steps
/// apart; where no order of the loops allows that, a loop is unrolled into
/// several instructions.
class StepLoops {
 public:
  explicit StepLoops(const vta::Config& config) : config_(config) {}

  /// Calls `issue` for each instruction. errors: those of `issue`.
  Status run(StepNest steps, const Issue& issue);

 private:
  struct Choice {
    int outer = -1, inner = -1;    ///< loops; -1: none
    std::vector<size_t> unrolled;  ///< into micro-ops, outermost first
    int split = -1;                ///< no choice fits: run this loop here
  };

  const Choice& choose(const StepNest& steps);
  Choice search(const StepNest& steps) const;
  bool try_pair(const StepNest& steps, int outer, int inner, Choice& out) const;
  bool fits_hardware(const StepNest& steps, size_t loop) const;
  bool spaced(const ConcreteNest& nest, const Choice& choice) const;
  Status issue(const StepNest& steps, const Choice& choice, const Issue& sink) const;

  vta::Config config_;
  std::map<std::vector<int64_t>, Choice> known_;
};

}  // namespace tilewright::codegen::vta_code
