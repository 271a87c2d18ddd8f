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

/// Rows of the result along `loop` that fit into what two neighbouring strips of it both read, as
/// what `padding` stores reaches beyond them: 4 for a window of five rows, 75 if it is dilated by
/// 15 and has six.
int64_t rows_between_strips(const BlockFacts& reader, const BlockFacts& padding,
                            const std::string& loop);

/// Rows of the result whose padded input is made strip by strip.
struct PaddedRows {
  int64_t extent = 1;
  int64_t tile = 1;     ///< rows of a register tile: strips hold whole ones
  int64_t between = 0;  ///< rows that fit into what two strips both read (rows_between_strips)
  int64_t most = 1;     ///< of a strip
  int64_t around = 1;   ///< iterations around them that threads share, too
  int64_t bytes = 0;    ///< of all that is padded
};

/// Rows of a strip, or of the whole plane, which tiles need not divide. Of the strips whose padded
/// input fits half the L2 cache, those that share out the rows best, and of these the largest; if
/// none fits, the smallest that has as many rows as lie `between` two, so that no input is padded
/// more than twice. The last strip is as long as the others if that can be. 0: no strips share out
/// the work.
int64_t rows_of_strip(const PaddedRows& all, int threads, int64_t l2_bytes);

/// Rows of a strip of channel blocks at most, `between` as in PaddedRows. Where windows reach far,
/// strips may be taller, so that about a third of their input is padded twice, and not most of it.
int64_t most_strip_rows(int64_t between);

/// Cuts the loops of a block that copies with padding, so that the copying itself tests nothing.
void cut_padding(Draft& draft, const std::string& name);

}  // namespace tilewright::rules
