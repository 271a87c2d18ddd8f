// A COMPUTE while it runs: streams of operands that read ahead, blocks that are loaded beside the
// steps.
#pragma once

#include <utility>

#include "tilewright/accel/spatial/sim/machine.h"

namespace tilewright::spatial {

/// The scratchpad in one cycle: one access, of at most one word of each bank, whoever asks first.
class Banks {
 public:
  explicit Banks(const Design& design) : count_(design.banks), word_(design.bank_bytes) {}
  void begin_cycle() { taken_ = false; }
  int64_t count() const { return count_; }
  int64_t word_bytes() const { return word_; }
  bool taken() const { return taken_; }
  /// False: somebody else has it in this cycle.
  bool take() { return !std::exchange(taken_, true); }

 private:
  int64_t count_, word_;
  bool taken_ = false;
};

/// Rows of one factor, read in order and ahead of the steps that use them. An access brings one
/// word of each bank, from the first word that is missing on; what it brought serves until the next
/// one.
class RowStream {
 public:
  RowStream(const SimInstruction& compute, int factor);
  /// Rows up to `limit`.
  void read(Banks& banks, int64_t limit);
  int64_t ready() const { return ready_; }

 private:
  void start_row(const Banks& banks);
  void advance();
  const SimInstruction& compute_;
  int factor_;
  std::vector<int64_t> index_;
  int64_t address_, ready_ = 0, rows_ = 1;
  int64_t word_ = 0, last_ = -1;           ///< of the row: still missing
  int64_t line_begin_ = 0, line_end_ = 0;  ///< words at hand
  bool started_ = false;
};

class Array {
 public:
  Array(const SimInstruction& compute, int64_t first_cycle);
  /// True: it took the access.
  bool cycle(int64_t now, Banks& banks);
  bool done() const { return fired_ == steps_; }
  int64_t steps() const { return steps_; }
  int64_t blocks() const { return blocks_; }

 private:
  const SimInstruction& compute_;
  int64_t first_cycle_, steps_ = 1, blocks_ = 1, fired_ = 0;
  int64_t block_rows_read_ = 0;  ///< of the block being loaded
  int64_t weight_word_ = -1;     ///< the first one not yet read
  int64_t loaded_ = 0, swapped_ = 0;
  std::array<RowStream, 2> streams_;
  void load_block(Banks& banks);
};

}  // namespace tilewright::spatial
