// How long an array takes to read the rows of a COMPUTE from the scratchpad, and with how many
// accesses (docs/spatial-timing.md, 2 and 4): the loops are followed as the machine goes through
// them, each part of them once.
//
// Example: rows of 9 bytes, side by side, in one bank of 16-byte words. Row 0 (bytes 0 to 8) takes
// an access, which keeps word 0; row 1 (9 to 17) finds 7 bytes there and fetches word 1; and so on.
// After 16 rows the next one begins at the beginning of a word again, with the same word kept: what
// follows repeats what was, so 10 000 rows cost as much time to count as 32.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tilewright::cost {

struct RowLoop {
  int64_t count = 1;
  int64_t last_count = 1;         ///< where `RowWalk::kShort` is set
  std::array<int64_t, 2> step{};  ///< bytes from one row of each stream to the next
  uint8_t last_sets = 0;          ///< bits that the last iteration sets for the loops inside it
};

/// The rows that one stream reads, one in each step.
struct RowBytes {
  int64_t bytes = 0;    ///< 0: there is no such stream
  int64_t last = 0;     ///< where the stream's bit is set: of a ragged block of lanes
  int64_t fetches = 1;  ///< more: nothing is kept from row to row

  /// Accesses of a row that begins `offset` bytes behind a word's begin, if nothing of it is there.
  int64_t accesses(int64_t row, int64_t offset, int64_t line) const {
    return std::max((row * fetches + line - 1) / line, (offset + row + line - 1) / line);
  }
};

struct RowCosts {
  /// From the first read to the last step. Of two streams too few, where both find their next rows
  /// in their lines and the port is idle: array_walk.h follows that.
  int64_t cycles = 0;
  int64_t accesses = 0;  ///< of the scratchpad
};

struct RowWalk {
  static constexpr uint8_t kShort = 4;  ///< bits 0 and 1: the streams' last blocks of lanes

  int64_t word = 16, banks = 1;  ///< bytes of a word: a power of two
  std::array<RowBytes, 2> streams;
  static constexpr size_t kMostLoops = 9;
  std::array<RowLoop, kMostLoops> loops;  ///< innermost first
  size_t depth = 0;                       ///< how many there are

  /// Around those that are there; one whose rows go on where those inside it end becomes one with
  /// them.
  void add(const RowLoop& loop);
  /// requires: the first row begins at a word.
  RowCosts costs() const;
};

}  // namespace tilewright::cost
