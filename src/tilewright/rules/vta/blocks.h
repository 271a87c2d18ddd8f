// The roles of the blocks of a layer for VTA.
#pragma once

#include <vector>

#include "tilewright/rules/common/program_facts.h"

namespace tilewright::rules {

/// Absent roles are null. Pointers are into the given facts.
struct VtaBlocks {
  const BlockFacts* reduce = nullptr;  ///< the convolution or the pooling
  const BlockFacts* init = nullptr;    ///< its start value
  const BlockFacts* staged = nullptr;  ///< computes what it reads: padding, every other row
  const BlockFacts* last = nullptr;    ///< stores the result
};
VtaBlocks find_vta_blocks(const std::vector<BlockFacts>& blocks);

}  // namespace tilewright::rules
