// How often the loops of FPGA processes begin an iteration: the initiation interval,
//
//   II = max(wanted, ports, recurrence)
//
// - ports: the most accesses of one iteration to one bank. A bank has one port to read and one to
//   write; equal elements are one access. Registers have as many ports as elements.
// - recurrence: ceil(L / d). L cycles pass from reading a sum to reading it again (read, add,
//   write), d iterations from one update of an element to the next: the product of the loops inside
//   the innermost reduction loop. An order of loops with d < L costs a factor and is no error.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/hw/fpga_device.h"
#include "tilewright/lower/processes.h"

namespace tilewright::lower {

/// Of a loop with mark `ii`, which counts its iterations and those of the loops directly around.
struct Initiation {
  std::string loop;
  std::vector<const For*> nest;  ///< the loops of the counter, outermost first
  int64_t wanted = 1;
  int64_t ports = 1;
  std::string busiest;     ///< `4 reads of one bank of X.t in an iteration`; empty where ports is 1
  int64_t recurrence = 1;  ///< of the sum below
  std::string sum;         ///< the buffer that is updated again; empty if there is none
  int64_t latency = 0, distance = 0;  ///< L and d of it

  int64_t cycles() const { return std::max({wanted, ports, recurrence}); }
  /// What makes it more than 1: `wanted`, the bank and its accesses, or the latency over the
  /// distance; empty if nothing does.
  std::string why() const;
};

/// Every loop with mark `ii` in a process, in program order. requires: the program of the process
/// went through the pipeline `fpga`, or its buffers on the chip have the size of a tile.
/// errors: Invalid (a loop inside is not unrolled, banks that do not fit), Unsupported (the device
/// lacks an operator; sums of floats in exact math, see sums_out_of_order).
Result<std::vector<Initiation>> initiations_of(const Process& process, MathMode math,
                                               const hw::FpgaDevice& device, hw::FpgaPath path);

/// Why the unrolled loops in `loop` (one with mark `ii`) cannot run side by side in exact math:
/// they add several products to one float in one iteration, and only a tree of adders does that in
/// time. Absent if they can.
std::optional<std::string> sums_out_of_order(const For& loop, MathMode math);

}  // namespace tilewright::lower
