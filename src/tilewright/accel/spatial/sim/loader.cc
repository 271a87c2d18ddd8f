#include "tilewright/accel/spatial/sim/loader.h"

#include <algorithm>

namespace tilewright::spatial {
namespace {

constexpr uint32_t kBiasBytes = 4;

}  // namespace

BoxWalk::BoxWalk(const Design& design, const Load& load)
    : load_(load), word_(uint32_t(design.bank_bytes)), banks_(uint32_t(design.banks)) {}

bool BoxWalk::zero() const {
  for (size_t a = 0; a < kAxes; ++a) {
    const LoadAxis& axis = load_.axes[a];
    if (at_[a] < axis.before || at_[a] >= axis.count - axis.after) return true;
  }
  return false;
}

uint32_t BoxWalk::place(int axis) const {
  return axis == load_.lane_axis ? block_ + in_block_ : offset_[size_t(axis)];
}

uint32_t BoxWalk::address() const {
  uint32_t address = load_.spad;
  for (int axis = 0; axis < kAxes; ++axis) address += place(axis);
  return address;
}

uint32_t BoxWalk::longest() const {
  const LoadAxis& row = load_.axes.back();
  if (row.spad_step != 1) return 1;
  bool outside = false;  // of what is there, whatever the position in the row
  for (size_t a = 0; a + 1 < kAxes; ++a)
    outside |= at_[a] < load_.axes[a].before || at_[a] >= load_.axes[a].count - load_.axes[a].after;
  const uint32_t x = at_.back(), end = row.count - row.after;
  uint32_t bytes = row.count - x;
  if (!outside && x < row.before)
    bytes = row.before - x;
  else if (!outside && x < end)
    bytes = end - x;
  if (load_.lane_axis == kAxes - 1) bytes = std::min(bytes, load_.lanes - lane_);
  return std::min(bytes, banks_ * word_ - address() % word_);
}

void BoxWalk::advance(int axis) {
  const auto a = size_t(axis);
  const LoadAxis& row = load_.axes[a];
  if (axis != load_.lane_axis) {
    offset_[a] += row.spad_step;
    return;
  }
  in_block_ += row.spad_step;
  if (++lane_ < load_.lanes) return;
  lane_ = in_block_ = 0;
  block_ += load_.lane_pitch;
}

void BoxWalk::take(uint32_t bytes) {
  at_.back() += bytes;
  if (load_.lane_axis != kAxes - 1)
    offset_.back() += bytes * load_.axes.back().spad_step;
  else
    for (; bytes > 0; --bytes) advance(kAxes - 1);
  for (int axis = kAxes - 1; axis >= 0; --axis) {
    const auto a = size_t(axis);
    if (at_[a] < load_.axes[a].count) return;
    at_[a] = offset_[a] = 0;
    if (axis == load_.lane_axis) lane_ = block_ = in_block_ = 0;
    if (axis == 0) {
      done_ = true;
      return;
    }
    ++at_[a - 1];
    advance(axis - 1);
  }
}

Loader::Loader(const Design& design, const Load& load, uint64_t first_cycle, ReadPort& port)
    : design_(design),
      port_(port),
      first_cycle_(first_cycle),
      walk_(design, load),
      run_bytes_(runs(load).bytes),
      runs_to_ask_(runs(load).count()),
      bias_left_(run_bytes_ == 0 ? 0 : load.bias_words) {
  run_to_ask_ = run_left_ = run_bytes_;
  burst_left_ = std::min(run_bytes_, uint64_t(design.burst_bytes));
}

/// One burst in a cycle, if the port has a place for it.
void Loader::request(uint64_t now) {
  if (runs_to_ask_ == 0 || !port_.ready()) return;
  port_.request(now);
  run_to_ask_ -= std::min(run_to_ask_, uint64_t(design_.burst_bytes));
  if (run_to_ask_ > 0) return;
  run_to_ask_ = run_bytes_;
  --runs_to_ask_;
}

void Loader::look(uint64_t now) {
  piece_ = 0;
  displaced_ = false;
  if (now < first_cycle_) return;
  request(now);
  if (bias_left_ > 0) {
    if (port_.offers()) piece_ = kBiasBytes;
    return;
  }
  if (walk_.done()) return;
  const bool zero = walk_.zero();
  if (!zero && !port_.offers()) return;
  piece_ = walk_.longest();
  if (!zero)
    piece_ =
        uint32_t(std::min<uint64_t>({piece_, uint64_t(design_.bus_bytes) - beat_at_, burst_left_}));
  const uint32_t word = uint32_t(design_.bank_bytes), address = walk_.address();
  displaced_ = line_ && !fits(address / word, (address + piece_ - 1) / word);
}

void Loader::take_data(uint64_t now, uint32_t bytes) {
  beat_at_ += bytes;
  burst_left_ -= bytes;
  run_left_ -= bytes;
  if (run_left_ == 0) run_left_ = run_bytes_;
  if (burst_left_ == 0) {
    port_.finish_burst(now);
    burst_left_ = std::min(run_left_, uint64_t(design_.burst_bytes));
    beat_at_ = 0;
  }
  if (beat_at_ == uint32_t(design_.bus_bytes)) beat_at_ = 0;
}

bool Loader::move(uint64_t now, bool granted) {
  const bool flush = line_ && (walk_.done() || displaced_);
  // The line before goes to its banks, then this one; a line that must make room for the next piece
  // waits behind it.
  bool line_leaves = false;
  if (granted && pending_) {
    pending_ = flush && displaced_;
    line_leaves = pending_;
  } else if (granted) {
    line_leaves = true;
  } else if (displaced_ && !pending_) {
    pending_ = line_leaves = true;
  }
  if (line_leaves) line_.reset();
  if (piece_ > 0 && bias_left_ > 0) {
    --bias_left_;
    take_data(now, piece_);
  } else if (piece_ > 0 && (!displaced_ || line_leaves)) {
    if (!line_) line_ = walk_.address() / uint32_t(design_.bank_bytes);
    const bool data = !walk_.zero();
    walk_.take(piece_);
    if (data) take_data(now, piece_);
    return false;
  }
  return walk_.done() && !line_ && !pending_;
}

}  // namespace tilewright::spatial
