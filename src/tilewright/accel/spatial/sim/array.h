// A COMPUTE while it runs: streams of operands that read ahead, blocks that are loaded beside the
// steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tilewright/accel/spatial/operands.h"

namespace tilewright::spatial {

/// Some of a COMPUTE's loops, outermost first: where a factor is, and how many lanes of a role.
class LoopWalk {
 public:
  LoopWalk(const Compute& compute, int first, int last, int factor);
  /// False: it was the last place, and the walk begins again.
  bool next() {
    for (int l = moving_; l-- > 0;) {
      const auto [loop, count, step] = loops_[size_t(l)];
      offset_ += step;
      if (++at_[loop] < count) return true;
      offset_ -= count * step;
      at_[loop] = 0;
    }
    return false;
  }
  uint32_t offset() const { return offset_; }
  /// Lanes of a role that do something here.
  uint32_t lanes(const Lanes& role, int64_t width) const {
    const int64_t before = role.loop < 0 ? 0 : at_[size_t(role.loop)] * width;
    return uint32_t(std::clamp<int64_t>(role.count - before, 0, width));
  }

 private:
  struct Loop {
    uint32_t loop = 0, count = 1, step = 0;
  };
  std::array<Loop, kLoops> loops_{};  ///< those of more than one iteration
  int moving_ = 0;
  std::array<uint32_t, kLoops> at_{};
  uint32_t offset_ = 0;
};

/// Rows of bytes that are read one after the other. An access brings a line: one word of each bank.
class RowReader {
 public:
  RowReader(const Design& design, uint32_t fetches)
      : word_(uint32_t(design.bank_bytes)),
        line_bytes_(uint32_t(design.banks) * word_),
        fetches_(fetches) {}
  void start(uint32_t address, uint32_t bytes);
  /// The line that is there does not have the rest of the row.
  bool needs_access() const { return left_ > at_hand_ || still_ > 0; }
  /// Takes what the line has, and what an access brings behind it.
  /// True: the row is complete.
  bool read(bool accessed);

 private:
  void look();

  uint32_t word_, line_bytes_, fetches_;
  uint32_t address_ = 0, left_ = 0;
  int64_t still_ = 0;     ///< bytes that all units together have to fetch
  uint32_t line_ = 0;     ///< its first byte
  uint32_t at_hand_ = 0;  ///< bytes of the row in the line that is there, from the next one on
  bool has_line_ = false;
};

/// Rows of a factor, one for each step.
class RowStream {
 public:
  RowStream(const Design& design, const Compute& compute, int factor);
  bool active(uint64_t fired) const { return left_ > 0 && ready_ < fired + kAhead; }
  bool needs_access() const { return reader_.needs_access(); }
  void read(bool accessed);
  uint64_t ready() const { return ready_; }
  static constexpr uint64_t kAhead = 8;

 private:
  void start() { reader_.start(spad_ + walk_.offset(), walk_.lanes(role_, width_)); }
  Lanes role_;         ///< the one whose lanes a row has
  int64_t width_ = 0;  ///< all of them
  uint32_t spad_;
  LoopWalk walk_;
  RowReader reader_;
  uint64_t ready_ = 0, left_ = 1;
};

/// Rows of the blocks that stay, one block after the other.
class BlockStream {
 public:
  BlockStream(const Design& design, const Compute& compute);
  bool active() const { return blocks_ > 0; }
  bool needs_access() const { return reader_.needs_access(); }
  /// True: the block is complete.
  bool read(bool accessed);

 private:
  void start();
  const Compute& compute_;
  RoleLanes all_;
  bool conv_;
  LoopWalk walk_, taps_;
  RowReader reader_;
  uint64_t blocks_ = 1;
  uint32_t row_ = 0, rows_ = 0;
};

class Array {
 public:
  Array(const Design& design, const Compute& compute, uint64_t first_cycle);
  bool wants(uint64_t now) const;
  /// True: the last step fires in this cycle.
  bool cycle(uint64_t now, bool granted);

 private:
  bool swaps() const { return stays_ && loaded_ && block_left_ == 0; }
  bool loads_weights() const { return stays_ && weights_.active() && (!loaded_ || swaps()); }

  bool stays_;
  uint64_t first_cycle_, steps_ = 1, per_block_ = 1, fired_ = 0, block_left_ = 0;
  bool loaded_ = false;  ///< the next block is there
  RowStream first_, second_;
  BlockStream weights_;
};

}  // namespace tilewright::spatial
