#include "tilewright/accel/spatial/sim/array.h"

#include <bit>
#include <utility>

#include "tilewright/accel/spatial/needs.h"

namespace tilewright::spatial {

LoopWalk::LoopWalk(const Compute& compute, int first, int last, int factor) {
  for (int l = first; l < last; ++l) {
    const ComputeLoop& loop = compute.loops[size_t(l)];
    if (loop.count > 1)
      loops_[size_t(moving_++)] = {uint32_t(l), loop.count,
                                   uint32_t(loop.spad_step[size_t(factor)])};
  }
}

void RowReader::look() {
  const bool here =
      has_line_ && fetches_ <= 1 && address_ >= line_ && address_ - line_ < line_bytes_;
  at_hand_ = here ? std::min(left_, line_ + line_bytes_ - address_) : 0;
}

void RowReader::start(uint32_t address, uint32_t bytes) {
  address_ = address;
  left_ = bytes;
  still_ = fetches_ > 1 ? int64_t{bytes} * fetches_ : 0;
  look();
}

bool RowReader::read(bool accessed) {
  address_ += at_hand_;
  left_ -= at_hand_;
  if (accessed) {
    line_ = address_ & ~(word_ - 1);  // a power of two
    has_line_ = true;
    still_ -= line_bytes_;
    const uint32_t bytes = std::min(left_, line_ + line_bytes_ - address_);
    address_ += bytes;
    left_ -= bytes;
  }
  look();
  return left_ == 0 && still_ <= 0;
}

RowStream::RowStream(const Design& design, const Compute& compute, int factor)
    : spad_(compute.spad[size_t(factor)]),
      walk_(compute, 0, kLoops, factor),
      reader_(design, row_fetches(design, factor)) {
  const RoleLanes all = all_lanes(design);
  if (weights_stay(design) || design.unit == Unit::Dot)
    role_ = compute.k, width_ = all.k;
  else if (factor == 0)
    role_ = compute.i, width_ = all.i;
  else
    role_ = compute.j, width_ = all.j;
  for (const ComputeLoop& loop : compute.loops) left_ *= loop.count;
  start();
}

void RowStream::read(bool accessed) {
  if (!reader_.read(accessed)) return;
  ++ready_;
  --left_;
  if (walk_.next()) start();
}

BlockStream::BlockStream(const Design& design, const Compute& compute)
    : compute_(compute),
      all_(all_lanes(design)),
      conv_(design.unit == Unit::Conv2d),
      walk_(compute, 0, compute.block_loops, 1),
      taps_(compute, kLoops - compute.tap_loops, kLoops, 1),
      reader_(design, 1) {
  for (int l = 0; l < compute.block_loops; ++l) blocks_ *= compute.loops[size_t(l)].count;
  if (weights_stay(design)) start();
}

void BlockStream::start() {
  const uint32_t j = walk_.lanes(compute_.j, all_.j), k = walk_.lanes(compute_.k, all_.k);
  rows_ = conv_ ? j : k;
  reader_.start(compute_.spad[1] + walk_.offset() + taps_.offset() + row_ * compute_.row_step,
                conv_ ? k : j);
}

bool BlockStream::read(bool accessed) {
  if (!reader_.read(accessed)) return false;
  bool complete = false;
  if (++row_ >= rows_) {
    row_ = 0;
    complete = !taps_.next();
  }
  if (complete) {
    --blocks_;
    walk_.next();
  }
  if (blocks_ > 0) start();
  return complete;
}

Array::Array(const Design& design, const Compute& compute, uint64_t first_cycle)
    : stays_(weights_stay(design)),
      first_cycle_(first_cycle),
      first_(design, compute, 0),
      second_(design, compute, 1),
      weights_(design, compute) {
  for (size_t l = 0; l < kLoops; ++l) {
    steps_ *= compute.loops[l].count;
    if (l >= compute.block_loops) per_block_ *= compute.loops[l].count;
  }
}

bool Array::wants(uint64_t now) const {
  if (now < first_cycle_) return false;
  return (loads_weights() && weights_.needs_access()) ||
         (first_.active(fired_) && first_.needs_access()) ||
         (!stays_ && second_.active(fired_) && second_.needs_access());
}

bool Array::cycle(uint64_t now, bool granted) {
  if (now < first_cycle_) return false;
  const bool swap = swaps(), weights = loads_weights();
  const bool fires = first_.ready() > fired_ && (stays_ || second_.ready() > fired_) &&
                     (!stays_ || swap || block_left_ > 0);
  // One access, for the first of these that asks; who finds its bytes in its line needs none.
  const auto may_read = [&granted](const auto& stream) {
    if (!stream.needs_access()) return std::pair{true, false};
    const bool own = std::exchange(granted, false);
    return std::pair{own, own};
  };
  const auto read_row = [&](RowStream& stream) {
    if (!stream.active(fired_)) return;
    if (const auto [moves, accesses] = may_read(stream); moves) stream.read(accesses);
  };
  const auto read_weights = [&] {
    if (!weights) return;
    if (const auto [moves, accesses] = may_read(weights_); moves)
      loaded_ = weights_.read(accesses) || loaded_;
  };
  // While a block works, its rows are more urgent than the next block.
  const bool rows_first = block_left_ > 0;
  if (swap) {
    block_left_ = per_block_;
    loaded_ = false;
  }
  if (!rows_first) read_weights();
  // Of the factors, the one that is less ahead.
  const bool second_first = second_.ready() < first_.ready();
  if (!stays_ && second_first) read_row(second_);
  read_row(first_);
  if (!stays_ && !second_first) read_row(second_);
  if (rows_first) read_weights();
  if (!fires) return false;
  ++fired_;
  if (stays_) --block_left_;
  return fired_ == steps_;
}

}  // namespace tilewright::spatial
