#include "tilewright/cost/spatial/load_walk.h"

#include <algorithm>
#include <optional>

namespace tilewright::cost {

using spatial::kAxes;

/// Goes through the box of a LOAD, and writes down its pieces.
class PieceWriter {
 public:
  PieceWriter(const spatial::Design& design, const spatial::Load& load,
              std::vector<uint8_t>& pieces)
      : load_(load),
        word_(uint32_t(design.bank_bytes)),
        banks_(uint32_t(design.banks)),
        bus_(uint32_t(design.bus_bytes)),
        burst_(uint32_t(design.burst_bytes)),
        pieces_(pieces) {
    for (int axis = kAxes - load.run_axes; axis < kAxes; ++axis)
      run_ *= load.axes[size_t(axis)].there();
    for (const spatial::LoadAxis& axis : load.axes)
      if (axis.there() == 0) run_ = 0;
    if (run_ > 0) run_ += kBiasBytes * load.bias_words;
    run_left_ = run_;
    burst_left_ = std::min(run_, burst_);
    for (int word = 0; run_ > 0 && word < load.bias_words; ++word) put(LoadWalk::kBias, kBiasBytes);
  }

  void rows(size_t axis, uint32_t place, bool zeros) {
    if (axis + 1 == kAxes) return row(place, zeros);
    const spatial::LoadAxis& a = load_.axes[axis];
    for (uint32_t p = 0; p < a.count; ++p)
      rows(axis + 1, place + place_of(axis, p), zeros || p < a.before || p >= a.count - a.after);
  }

 private:
  static constexpr uint32_t kBiasBytes = 4;

  uint32_t place_of(size_t axis, uint32_t p) const {
    const uint32_t step = load_.axes[axis].spad_step;
    return int(axis) == load_.lane_axis
               ? p / load_.lanes * load_.lane_pitch + p % load_.lanes * step
               : p * step;
  }

  void row(uint32_t begin, bool zeros) {
    const spatial::LoadAxis& axis = load_.axes.back();
    const uint32_t end = axis.count - axis.after;
    const bool lanes = load_.lane_axis == kAxes - 1;
    for (uint32_t x = 0; x < axis.count;) {
      const bool zero = zeros || x < axis.before || x >= end;
      const uint32_t at = begin + place_of(kAxes - 1, x);
      uint32_t bytes = 1;
      if (axis.spad_step == 1) {
        bytes = (zeros || x >= end ? axis.count : x < axis.before ? axis.before : end) - x;
        if (lanes) bytes = std::min<uint32_t>(bytes, load_.lanes - x % load_.lanes);
        bytes = std::min(bytes, banks_ * word_ - at % word_);
      }
      if (!zero) bytes = std::min({bytes, bus_ - beat_at_, burst_left_});
      const uint32_t first = at / word_, last = (at + bytes - 1) / word_;
      const bool other = !line_ || first < *line_ || last >= *line_ + banks_;
      if (other) line_ = first;
      const auto kind = uint8_t(other ? LoadWalk::kOtherLine : 0);
      if (zero)
        pieces_.push_back(kind | LoadWalk::kZeros);
      else
        put(kind, bytes);
      x += bytes;
    }
  }

  /// Bytes that the port brings.
  void put(uint8_t kind, uint32_t bytes) {
    beat_at_ = (beat_at_ + bytes) % bus_;
    burst_left_ -= bytes;
    run_left_ -= bytes;
    if (run_left_ == 0) run_left_ = run_;
    if (burst_left_ == 0) {
      kind |= LoadWalk::kEndsBurst;
      burst_left_ = std::min(run_left_, burst_);
      beat_at_ = 0;
    }
    pieces_.push_back(kind);
  }

  const spatial::Load& load_;
  const uint32_t word_, banks_, bus_, burst_;
  std::vector<uint8_t>& pieces_;
  uint32_t run_ = 1, run_left_ = 0, burst_left_ = 0, beat_at_ = 0;
  std::optional<uint32_t> line_;
};

LoadWalk::LoadWalk(const spatial::Design& design, const spatial::Load& load)
    : latency_(design.timing.read_latency), gap_(design.timing.burst_gap) {
  PieceWriter(design, load, pieces_).rows(0, 0, false);
  keep_states();
}

void LoadWalk::take(LoadState& state) const {
  // The next burst was asked for when this one was offered.
  if (next(state) & kEndsBurst)
    state.offered = std::max(state.offered + latency_, state.now + 1 + gap_);
  ++state.piece;
}

void LoadWalk::keep_states() {
  LoadState state;
  state.offered = latency_;
  for (int64_t next_kept = 0; state.piece < count(); ++state.now) {
    if (state.now >= next_kept) {
      kept_.push_back(state);
      next_kept += kBetween;
    }
    if (!(next(state) & kZeros)) state.now = std::max(state.now, state.offered);
    state.line |= !(next(state) & kBias);
    take(state);
  }
  cycles_ = state.now + 1;
}

LoadState LoadWalk::at(int64_t cycles) const {
  LoadState state;
  state.offered = latency_;
  const auto later = std::partition_point(
      kept_.begin(), kept_.end(), [&](const LoadState& kept) { return kept.now <= cycles; });
  if (later != kept_.begin()) state = *std::prev(later);
  while (state.now < cycles && !advance(state, wants(state)));
  return state;
}

int64_t LoadWalk::cycles_to(const LoadState& state) const {
  LoadState alone;
  alone.offered = latency_;
  const auto later = std::partition_point(
      kept_.begin(), kept_.end(), [&](const LoadState& kept) { return kept.piece <= state.piece; });
  if (later != kept_.begin()) alone = *std::prev(later);
  // What waits for the port waits no longer beside an array.
  while (alone.piece < state.piece || (alone.piece == state.piece && alone.now < state.now))
    if (advance(alone, wants(alone))) break;
  return alone.piece > state.piece ? alone.now - 1 : alone.now;
}

bool LoadWalk::advance(LoadState& state, bool granted) const {
  const bool there = is_there(state), other = displaced(state), all = state.piece == count();
  // The line before goes to its banks, then this one; a line that must make room for the next
  // piece waits behind it.
  bool leaves = granted;
  if (granted && state.waits)
    state.waits = leaves = other;
  else if (!granted && other && !state.waits)
    state.waits = leaves = true;
  if (leaves) state.line = false;
  const bool bias = there && next(state) & kBias;
  if (there && (!other || leaves)) {
    state.line |= !bias;
    take(state);
  }
  ++state.now;
  return all && !state.line && !state.waits;
}

}  // namespace tilewright::cost
