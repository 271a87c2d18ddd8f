// The least time that a machine allows a kernel on its own: arithmetic at the peak, or every
// operand read or written once.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "tilewright/tune/space.h"

namespace tilewright::driver {

/// A kernel beside what the machine allows. units: operations, bytes, ns.
struct Roof {
  double operations = 0, bytes = 0, compute = 0, memory = 0;
  std::string level;  ///< the nearest memory that holds all operands

  double limit() const { return std::max(compute, memory); }
};

/// Absent for kernels that do not compute, and for those of a device other than the processor.
std::optional<Roof> roof_of(const measure::Task& task);

}  // namespace tilewright::driver
