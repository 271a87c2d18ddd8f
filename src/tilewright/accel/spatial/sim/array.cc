#include "tilewright/accel/spatial/sim/array.h"

#include <algorithm>

namespace tilewright::spatial {
namespace {

constexpr int64_t kAhead = 8;

}  // namespace

RowStream::RowStream(const SimInstruction& compute, int factor)
    : compute_(compute),
      factor_(factor),
      index_(compute.loops.size()),
      address_(compute.base[factor]) {
  for (const SimLoop& loop : compute.loops) rows_ *= loop.count;
}

void RowStream::start_row(const Banks& banks) {
  const int64_t word = banks.word_bytes(), bytes = compute_.row_bytes[factor_];
  word_ = address_ / word;
  last_ = (address_ + bytes - 1) / word;
  // Without links every unit asks for itself: all words of all of them, each time.
  const int64_t fetches = compute_.fetches[factor_];
  if (fetches > 1) last_ = word_ + (bytes * fetches + word - 1) / word - 1;
  started_ = true;
}

void RowStream::advance() {
  for (size_t i = index_.size(); i-- > 0;) {
    const SimLoop& loop = compute_.loops[i];
    address_ += loop.step[factor_];
    if (++index_[i] < loop.count) return;
    address_ -= loop.count * loop.step[factor_];
    index_[i] = 0;
  }
}

void RowStream::read(Banks& banks, int64_t limit) {
  limit = std::min(limit, rows_);
  const bool keeps = compute_.fetches[factor_] == 1;
  while (ready_ < limit) {
    if (!started_) start_row(banks);
    while (word_ <= last_) {
      if (keeps && word_ >= line_begin_ && word_ < line_end_) {
        word_ = std::min(last_ + 1, line_end_);
        continue;
      }
      if (!banks.take()) return;
      line_begin_ = word_;
      line_end_ = word_ + banks.count();
      word_ = std::min(last_ + 1, line_end_);
    }
    started_ = false;
    ++ready_;
    advance();
  }
}

Array::Array(const SimInstruction& compute, int64_t first_cycle)
    : compute_(compute),
      first_cycle_(first_cycle),
      streams_{RowStream(compute, 0), RowStream(compute, 1)} {
  for (size_t i = 0; i < compute.loops.size(); ++i) {
    steps_ *= compute.loops[i].count;
    if (static_cast<int>(i) < compute.block_loops) blocks_ *= compute.loops[i].count;
  }
}

/// At most one row of a later block in a cycle.
void Array::load_block(Banks& banks) {
  if (loaded_ > swapped_ || loaded_ == blocks_) return;
  const int64_t bytes = compute_.row_bytes[1],
                row = loaded_ * compute_.block_rows + block_rows_read_;
  const int64_t last = (compute_.base[1] + (row + 1) * bytes - 1) / banks.word_bytes();
  if (weight_word_ < 0) weight_word_ = compute_.base[1] / banks.word_bytes();
  if (weight_word_ <= last) {
    if (!banks.take()) return;
    weight_word_ += banks.count();
    if (weight_word_ <= last) return;
  }
  if (++block_rows_read_ < compute_.block_rows) return;
  block_rows_read_ = 0;
  ++loaded_;
}

bool Array::cycle(int64_t now, Banks& banks) {
  if (now < first_cycle_) return false;
  const bool others = banks.taken();
  const int64_t before[] = {streams_[0].ready(), streams_[1].ready()};
  const int64_t loaded = loaded_;
  const int64_t limit = fired_ + kAhead;
  if (compute_.stationary && loaded > swapped_ && fired_ == swapped_ * (steps_ / blocks_))
    ++swapped_;
  if (compute_.stationary) load_block(banks);
  streams_[0].read(banks, limit);
  if (!compute_.stationary) streams_[1].read(banks, limit);
  const bool fed = before[0] > fired_ && (compute_.stationary || before[1] > fired_);
  const bool has_block = !compute_.stationary || fired_ < swapped_ * (steps_ / blocks_);
  fired_ += fed && has_block && !done();
  return banks.taken() && !others;
}

}  // namespace tilewright::spatial
