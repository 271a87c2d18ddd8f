// Several designs as one, which a single bitstream serves: the layers of a network.
//
//   layer 1: X 2 banks x 32 words, loop 4 { nest [8, 4] }     together: X 2 banks x 48 words,
//   layer 2: X 2 banks x 48 words, loop 2 { nest [8, 6] }     rows of a table: 4 8 4, 2 8 6
//
// Extents, strides, addresses, limits and constants that differ are numbers of the table
// (rtl/rtl.h, Numbers::Table); memories, operators, loops and ports are the structure, which is the
// same for all.
#pragma once

#include <vector>

#include "tilewright/accel/fpga/design.h"

namespace tilewright::fpga {

/// The same designs with one structure, so that their Verilog with a table is one text: memories
/// are as large and integers as wide as the largest, intervals as long as the longest. What they
/// compute stays.
/// errors: Unsupported, with the first difference that no table holds.
Result<std::vector<Design>> merge(std::vector<Design> designs);

/// Designs and the structures that they share: each joins the first structure that takes it.
struct MergedDesigns {
  std::vector<Design> designs;  ///< in their order, merged
  std::vector<int> structure;   ///< of each
  int structures = 0;
  /// Why a design could not join the structure before it; a line for each structure but the first.
  std::vector<std::string> differences;
};
MergedDesigns merge_alike(std::vector<Design> designs);

}  // namespace tilewright::fpga
