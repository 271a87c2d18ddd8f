#include "tilewright/accel/spatial/sim/array.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tilewright/accel/spatial/needs.h"

namespace tilewright::spatial {

LoopWalk::LoopWalk(const Compute& compute, int first, int last, int factor)
    : compute_(compute), first_(first), last_(last), factor_(factor) {}

bool LoopWalk::next() {
  for (int l = last_; l-- > first_;) {
    const ComputeLoop& loop = compute_.loops[size_t(l)];
    const uint32_t step = loop.spad_step[size_t(factor_)];
    offset_ += step;
    if (++at_[size_t(l)] < loop.count) return true;
    offset_ -= loop.count * step;
    at_[size_t(l)] = 0;
  }
  return false;
}

uint32_t LoopWalk::lanes(const Lanes& role, int64_t width) const {
  const int64_t before = role.loop < 0 ? 0 : at_[size_t(role.loop)] * width;
  return uint32_t(std::clamp<int64_t>(role.count - before, 0, width));
}

void RowReader::start(uint32_t address, uint32_t bytes) {
  address_ = address;
  left_ = bytes;
  still_ = fetches_ > 1 ? int64_t{bytes} * fetches_ : 0;
}

uint32_t RowReader::at_hand() const {
  if (!has_line_ || fetches_ > 1) return 0;
  const uint32_t begin = line_ * uint32_t(design_.bank_bytes), end = begin + line_bytes();
  return address_ < begin || address_ >= end ? 0 : std::min(left_, end - address_);
}

bool RowReader::needs_access() const { return left_ > at_hand() || still_ > 0; }

bool RowReader::read(bool accessed) {
  const uint32_t kept = at_hand();
  address_ += kept;
  left_ -= kept;
  if (accessed) {
    line_ = address_ / uint32_t(design_.bank_bytes);
    has_line_ = true;
    still_ -= line_bytes();
    const uint32_t end = line_ * uint32_t(design_.bank_bytes) + line_bytes();
    const uint32_t bytes = std::min(left_, end - address_);
    address_ += bytes;
    left_ -= bytes;
  }
  return left_ == 0 && still_ <= 0;
}

RowStream::RowStream(const Design& design, const Compute& compute, int factor)
    : design_(design),
      compute_(compute),
      factor_(factor),
      walk_(compute, 0, kLoops, factor),
      reader_(design, row_fetches(design, factor)) {
  for (const ComputeLoop& loop : compute.loops) left_ *= loop.count;
  start();
}

void RowStream::start() {
  const RoleLanes all = all_lanes(design_);
  const RoleLanes here{walk_.lanes(compute_.i, all.i), walk_.lanes(compute_.j, all.j),
                       walk_.lanes(compute_.k, all.k)};
  const auto bytes = uint32_t(row_lanes(design_, here)[size_t(factor_)]);
  reader_.start(compute_.spad[size_t(factor_)] + walk_.offset(), bytes);
}

void RowStream::read(bool accessed) {
  if (!reader_.read(accessed)) return;
  ++ready_;
  --left_;
  if (walk_.next()) start();
}

BlockStream::BlockStream(const Design& design, const Compute& compute)
    : design_(design),
      compute_(compute),
      walk_(compute, 0, compute.block_loops, 1),
      taps_(compute, kLoops - compute.tap_loops, kLoops, 1),
      reader_(design, 1) {
  for (int l = 0; l < compute.block_loops; ++l) blocks_ *= compute.loops[size_t(l)].count;
  if (weights_stay(design)) start();
}

void BlockStream::start() {
  const RoleLanes all = all_lanes(design_);
  const uint32_t j = walk_.lanes(compute_.j, all.j), k = walk_.lanes(compute_.k, all.k);
  const bool conv = design_.unit == Unit::Conv2d;
  rows_ = conv ? j : k;
  reader_.start(compute_.spad[1] + walk_.offset() + taps_.offset() + row_ * compute_.row_step,
                conv ? k : j);
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
