// Programs of one form as one program with a table of numbers, so that one kernel serves the layers
// of a network one after the other.
//
//   layer 1: for c in 8 { .. c * 8 + i .. }       together: for c in t0 { .. c * t1 + i .. }
//   layer 2: for c in 4 { .. c * 16 + i .. }      rows of the table: (8, 8), (4, 16)
//
// Numbers that differ become scalars of the program, one for all places that have the same numbers
// in all layers. Memory on the chip is along each axis as large as the largest, so it may hold more
// than any layer needs. A condition that only some layers need (the last tile is
// partial) always holds in the others. What is unrolled, banks, slots and the order of loops must
// agree.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// requires of `func`: it is called with a row, and with the buffers of that layer, whose shapes
/// are those of the layer's own program.
struct HlsTable {
  Func func;                               ///< its scalars are the columns; of one program: none
  std::vector<std::vector<int64_t>> rows;  ///< of each program
};

/// requires: programs are prepared (prepare_hls) and have no scalars.
/// errors: Unsupported, with the first difference that no table holds.
Result<HlsTable> hls_table(const std::vector<Func>& funcs);

/// Tables that together hold all programs: each program joins the first that takes it.
struct HlsTables {
  std::vector<HlsTable> tables;
  /// Of each program: its table, and its row there.
  std::vector<std::pair<size_t, size_t>> places;
};
/// requires: programs are prepared. `fits`: whether a common program is wanted (its memory may be
/// too large); if not, a program joins another table.
Result<HlsTables> hls_tables(const std::vector<Func>& funcs,
                             const std::function<bool(const Func&)>& fits = {});

}  // namespace tilewright::codegen
