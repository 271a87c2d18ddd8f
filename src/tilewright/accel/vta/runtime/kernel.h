// Micro-op kernels recorded as loop nests, and their compression into the two hardware loops.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// A recorded GEMM or ALU instruction; its micro-op range is open until it is issued.
struct Kernel {
  std::variant<Gemm, Alu> op;
  std::vector<Uop> uops;
};

/// Records the steps of one instruction: loops in any depth around pushes, in program order.
class KernelRecorder {
 public:
  explicit KernelRecorder(const Gemm& gemm) : op_(gemm) {}
  explicit KernelRecorder(const Alu& alu) : op_(alu) {}

  /// What one iteration adds to the indices pushed inside. errors: Invalid (extent 0).
  Status loop_begin(uint32_t extent, uint32_t dst, uint32_t src, uint32_t wgt = 0);
  void push(const Uop& uop);
  /// errors: Invalid (no open loop, or nothing was pushed in it).
  Status loop_end();

  /// Loops around everything become hardware loops, outermost first; those inside are unrolled,
  /// and what repeats itself at a constant distance is folded into a hardware loop that is left.
  /// One loop alone is the outer one of a GEMM and the inner one of an ALU instruction.
  /// portable: equal destinations are at least three steps apart (docs/vta.md).
  ///   keeps: the sequence of steps.
  /// errors: Invalid (nothing pushed, open loops, not portable), Capacity (more micro-ops than the
  /// memory holds, an index beyond its memory, a count beyond its field).
  Result<Kernel> finish(const Config& config, bool portable = true) const;

 private:
  struct Loop {
    uint32_t extent = 1;
    Uop step;
    std::vector<size_t> body;  ///< of nodes_
  };
  struct Node {
    std::optional<Uop> uop;  ///< or a loop
    Loop loop;
  };

  Status unroll(size_t node, Uop base, size_t most, std::vector<Uop>& uops) const;

  std::variant<Gemm, Alu> op_;
  std::vector<Node> nodes_{Node{}};  ///< the first is a loop of extent 1 around everything
  std::vector<size_t> open_{0};
};

}  // namespace tilewright::vta
