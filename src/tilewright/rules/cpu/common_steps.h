// Steps that several rules take alike.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Moves the readers of `accumulator` into loop `anchor`; their names, or none if one cannot move.
std::vector<std::string> fuse_readers(Draft& draft, const Buffer& accumulator,
                                      const std::string& anchor);

/// Splits the innermost loop of `name` into vectors where its accesses allow, of `registers`
/// registers each.
void vectorize_innermost(Draft& draft, const std::string& name, const hw::CpuTarget& target,
                         int64_t registers = 1);

/// Loops along which block `name` neither reads nor writes a tile in registers, although it does so
/// along others: those of the channels of a softmax, all of which are divided by one sum.
std::set<std::string> loops_beside_tile(const Draft& draft, const std::string& name);

}  // namespace tilewright::rules
