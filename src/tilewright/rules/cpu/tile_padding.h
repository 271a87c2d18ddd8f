// Padding in front of windows: where it is tested, and how tests are kept out of loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Taps of a window whose padding is tested at the taps, at most.
inline constexpr int64_t kWindowTaps = 25;

/// Whether the value that `block` stores is chosen by a condition, as padding is.
bool has_select(const BlockFacts& block);

/// True if the padding in front of the windowed sum `reader` is better tested where it is read:
/// the taps are few enough to be written out and no lane is at a border alone.
bool reads_through_padding(const BlockFacts& reader, const BlockFacts& padding);

/// The block that pads this block's input, if nobody else reads it and each of `loops` selects
/// another part of it: then it can be computed strip by strip without computing anything twice.
std::string staged_producer(const Draft& draft, const BlockFacts& block,
                            const std::vector<std::string>& loops);

/// Iterations of `loop` in a row that read the same part of what `padding` stores: two if `reader`
/// finds it by `loop / 2` alone, as blocks of filters find their group. 1: none are known to.
int64_t iterations_that_share(const BlockFacts& reader, const BlockFacts& padding,
                              const std::string& loop);

/// Rows of a strip of `extent` rows whose padded input is made at once, with `around` iterations
/// around them that threads share, too; `bytes`: of all that is padded. The last strip is as long
/// as the others if that can be. 0: no strips share out the work.
int64_t rows_of_strip(int64_t extent, int64_t around, int64_t bytes, int threads, int64_t l2_bytes);

/// Rows of the result along `loop` that fit into what two neighbouring strips of it both read, as
/// what `padding` stores reaches beyond them: 4 for a window of five rows, 75 if it is dilated by
/// 15 and has six.
int64_t rows_between_strips(const BlockFacts& reader, const BlockFacts& padding,
                            const std::string& loop);

/// As rows_of_strip, where tiles of `tile` rows each make up the strips, and a strip may be the
/// whole plane: the largest strip whose padded input fits half the L2 cache, else the smallest that
/// has as many rows as lie `between` two, so that no input is padded more than twice.
int64_t rows_of_tiles(int64_t extent, int64_t tile, int64_t between, int64_t around, int64_t bytes,
                      int threads, int64_t l2_bytes);

/// Cuts the loops of a block that copies with padding, so that the copying itself tests nothing.
void cut_padding(Draft& draft, const std::string& name);

}  // namespace tilewright::rules
