// What an instruction touches: the common ground of token insertion, checkers and simulators.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/accel/common/ranges.h"

namespace tilewright::accel {

/// Rows of a memory, in the unit in which that memory is addressed. Row i is
/// [address + i*pitch, address + i*pitch + width).
struct Access {
  int memory = 0;  ///< number in Queues::memories
  uint64_t address = 0, pitch = 0, width = 0;
  uint32_t rows = 1;
  bool write = false;
};

/// All accesses of an instruction. They may cover more than it touches, but no less.
using Footprint = std::vector<Access>;

/// One row: [begin, end).
Access one_row(int memory, uint64_t begin, uint64_t end, bool write);
bool empty(const Access& access);
/// From the first row's begin to the last one's end. requires: not empty.
Range hull(const Access& access);

/// Whether both touch a place and one of them writes: exact, rows against rows.
bool conflict(const Access& a, const Access& b);
bool conflict(const Footprint& a, const Footprint& b);

}  // namespace tilewright::accel
