// Padding in front of windows: where it is tested, and how tests are kept out of loops.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Taps of a window whose padding is tested at the taps, at most.
inline constexpr int64_t kWindowTaps = 25;

/// Whether the value that `block` stores is chosen by a condition, as padding is.
bool has_select(const BlockFacts& block);

/// True if the padding in front of the windowed sum `reader` is better tested where it is read:
/// the taps are few enough to be written out and no lane is at a border alone.
bool reads_through_padding(const BlockFacts& reader, const BlockFacts& padding);

/// Cuts the loops of a block that copies with padding, so that the copying itself tests nothing.
void cut_padding(Draft& draft, const std::string& name);

}  // namespace tilewright::rules
