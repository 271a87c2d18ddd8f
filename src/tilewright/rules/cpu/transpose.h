// The rule for blocks that read along one axis and write along another.
#pragma once

#include <string>

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Moves a transposing copy tile by tile, so that every cache line it touches is used up before it
/// leaves the cache. `around`: the loop inside which it may move loops; empty: all of them. False,
/// with nothing changed, where the block reads along the axis it writes.
bool tile_transpose(Draft& draft, const std::string& name, const hw::CpuTarget& target,
                    const std::string& around = "");

/// Whether `block` copies what it reads along one axis to another, as bringing channels into blocks
/// does.
bool turns(const BlockFacts& block);

/// Whether a copy out of channel blocks leaves out channels that fill up the last block.
/// requires: turns(copy)
bool leaves_channels_out(const BlockFacts& copy);

/// Whether what lies behind one index of `axis` ends within a cache line, so that who writes the
/// next index writes that line, too. True where extents are not known.
bool ends_within_line(const Buffer& buffer, size_t axis);

}  // namespace tilewright::rules
