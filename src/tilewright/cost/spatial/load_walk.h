// A LOAD piece by piece (docs/spatial-timing.md, 3): when each one is there, and which of them
// belong to another line than the one before, so that this one has to be written.
//
// Example: rows of 9 bytes, side by side, in lines of 16 bytes, through a port of 8 bytes. A row
// comes as 8 bytes and 1, a cycle each. The second row's first piece ends with the line, after 7
// bytes: the next one belongs to another line, and the first line wants an access of the
// scratchpad.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/accel/spatial/isa.h"

namespace tilewright::cost {

/// How far a LOAD is. Cycles count from its first request on.
struct LoadState {
  int64_t now = 0;
  int64_t piece = 0;    ///< that it takes next
  int64_t offered = 0;  ///< when the burst of that piece can begin
  bool line = false;    ///< one is being filled,
  bool waits = false;   ///< and one before it waits for its access
};

class LoadWalk {
 public:
  LoadWalk(const spatial::Design& design, const spatial::Load& load);

  int64_t cycles() const { return cycles_; }  ///< nothing else wants the scratchpad
  /// Alone, after so many cycles: 0..cycles().
  LoadState at(int64_t cycles) const;
  /// Cycles after which it would be as far alone.
  int64_t cycles_to(const LoadState& state) const;
  bool wants(const LoadState& state) const {
    return state.waits || (state.line && (state.piece == count() || displaced(state)));
  }
  /// One cycle, with the access that it wants or without it. True: that was the last one.
  bool advance(LoadState& state, bool granted) const;

 private:
  friend class PieceWriter;
  /// What a piece is, as bits.
  enum : uint8_t { kZeros = 1, kBias = 2, kOtherLine = 4, kEndsBurst = 8 };
  static constexpr int64_t kBetween = 1024;  ///< cycles from one state that is kept to the next

  int64_t count() const { return static_cast<int64_t>(pieces_.size()); }
  uint8_t next(const LoadState& state) const { return pieces_[static_cast<size_t>(state.piece)]; }
  bool is_there(const LoadState& state) const {
    return state.piece < count() && (next(state) & kZeros || state.now >= state.offered);
  }
  bool displaced(const LoadState& state) const {
    return state.line && is_there(state) && next(state) & kOtherLine;
  }
  void take(LoadState& state) const;
  void keep_states();

  int64_t latency_, gap_, cycles_ = 0;
  std::vector<uint8_t> pieces_;
  std::vector<LoadState> kept_;
};

}  // namespace tilewright::cost
