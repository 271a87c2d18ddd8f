// Accesses of the scratchpad for the rows of a COMPUTE, in the mean: quick, for the many mappings
// that a mapper predicts. Rows that lie in one line share an access; how often they do follows from
// where in their words rows begin.
//
// Example: rows of 9 bytes side by side, lines of one 16-byte word. Rows begin at all 16 places of
// a word; at 8 of them 9 bytes fit one line.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {
namespace {

constexpr size_t kMostBankBytes = 64;  // of a legal design (accel/spatial/design.cc)

class MeanRows {
 public:
  MeanRows(const SpatialUnit& unit, int factor, const SpatialSizes& size)
      : unit_(unit),
        size_(size),
        own_(unit.lane_loop[factor]),
        line_(unit.line_bytes()),
        word_(unit.design.bank_bytes),
        bytes_(unit.row_bytes(factor, size)),
        last_(size[own_] - (blocks(own_) - 1) * unit.lanes[own_]),
        step_(unit.strides(factor, size)) {
    find_places();
  }

  double accesses() {
    fitting_ = bytes_ > line_ ? 0 : of_row([&](int64_t row) { return fits(row); });
    apart_ = bytes_ > line_ ? of_row([&](int64_t row) { return long_row(row); }) : 2;
    span_ = bytes_;
    for (int i = 0; i < unit_.loops; ++i) {
      const int loop = unit_.inner[i];
      if (blocks(loop) == 1) continue;
      if (step_[loop] == 0)
        read_again(loop);
      else if (run_ && (step_[loop] == span_ || (step_[loop] < span_ && span_ <= line_)))
        go_on(loop);
      else
        move_away(loop);
    }
    return fitting_ * together_ + (1 - fitting_) * apart_;
  }

  /// Of units that each fetch for themselves: nothing is kept.
  double accesses_apart(int64_t fetches) {
    double rows = 1;
    for (int loop = 0; loop < unit_.loops; ++loop) rows *= double(blocks(loop));
    return rows * of_row([&](int64_t row) {
             return std::max(double(ceil_div(row * fetches, line_)), long_row(row));
           });
  }

 private:
  int64_t blocks(int loop) const { return ceil_div(size_[loop], unit_.lanes[loop]); }

  /// Where in their word rows begin: loops with many iterations get to every multiple of
  /// `aligned_`, those with few to the places that they have.
  void find_places() {
    aligned_ = word_;
    for (int loop = 0; loop < unit_.loops; ++loop) {
      if (blocks(loop) == 1 || step_[loop] % word_ == 0) continue;
      const int64_t common = std::gcd(word_, step_[loop]);
      if (blocks(loop) * common < word_)
        few_ |= uint32_t{1} << loop;
      else
        aligned_ = std::gcd(aligned_, common);
    }
  }

  /// Places in a word, by bytes.
  using Places = std::array<double, kMostBankBytes>;

  /// The share of rows that begin at each place, by the loops with few iterations.
  Places places() const {
    const auto count = size_t(aligned_);
    Places places;
    std::fill_n(places.begin(), count, 0.0);
    places[0] = 1;
    for (int loop = 0; loop < unit_.loops; ++loop) {
      if (!unit_.in(few_ & ~in_span_, loop)) continue;
      const double share = 1 / double(blocks(loop));
      Places moved;
      std::fill_n(moved.begin(), count, 0.0);
      for (int64_t i = 0; i < blocks(loop); ++i)
        for (size_t at = 0; at < count; ++at)
          moved[(at + size_t(i * step_[loop])) % count] += places[at] * share;
      std::copy_n(moved.begin(), count, places.begin());
    }
    return places;
  }

  /// The share of places at which so many bytes need only one access.
  double fits(int64_t span) const {
    if (span > line_) return 0;
    const auto fitting = [&](int64_t at) {
      const int64_t begins = (line_ - span - at) / aligned_ + 1;  // at, at + aligned_, ..
      return std::min(1.0, double(begins) * double(aligned_) / double(word_));
    };
    if ((few_ & ~in_span_) == 0) return fitting(0);
    const Places shares = places();
    double share = 0;
    for (int64_t at = 0; at < std::min(aligned_, line_ - span + 1); ++at)
      if (shares[size_t(at)] > 0) share += shares[size_t(at)] * fitting(at);
    return share;
  }

  /// The last block of lanes may be smaller.
  template <typename Of>
  double of_row(const Of& of) const {
    const double count = double(blocks(own_)), last = of(std::min(bytes_, last_));
    const double others = count > 1 && last_ < bytes_ ? of(bytes_) : last;
    return ((count - 1) * others + last) / count;
  }

  /// One access more where the row begins so late in its word that its end needs another line.
  double long_row(int64_t row) const {
    const int64_t lines = ceil_div(row, line_);
    return double(lines) + 1 - fits(row - (lines - 1) * line_);
  }

  // What each loop around the rows so far does to their accesses.
  void read_again(int loop) {
    if (span_ > line_) together_ *= double(blocks(loop));
    apart_ *= double(blocks(loop));
    run_ = run_ && fitting_ == 1;
  }

  void go_on(int loop) {
    const double count = double(blocks(loop)), alone = fitting_, before = apart_;
    const double again = (1 - alone) * std::max(0.0, before - once());
    const bool overlap = step_[loop] < span_;
    span_ += (blocks(loop) - 1) * step_[loop];
    in_span_ |= uint32_t{1} << loop;
    if (loop == own_) span_ -= bytes_ - last_;
    fitting_ = fits(span_);
    if (fitting_ == 1) {
      overlap_ = overlap_ || overlap;
      return;
    }
    if (!overlap) {
      apart_ = once() + count * again;
      return;
    }
    // A row that begins before the line that is kept needs both of its lines again.
    overlap_ = true;
    const double some = std::min(1.0, alone + (count - 1) * double(step_[loop]) / double(word_));
    const double all = count * (1 - alone) * before + (alone > 0 ? some : 0) - fitting_;
    apart_ = std::max(2.0, all / (1 - fitting_));
  }

  /// Accesses for all bytes from the first to the last one, where these do not fit one line. Where
  /// a line ends, rows that overlap are behind it and before it again.
  double once() const {
    if (span_ <= line_) return 2;
    if (!overlap_) return long_row(span_);
    return 2 * double(span_) / (double(line_) - 0.5 * double(word_ - aligned_));
  }

  void move_away(int loop) {
    const double count = double(blocks(loop));
    const auto beside = [&](int64_t offset) {
      const int64_t more = std::max<int64_t>(0, line_ - offset - span_) / step_[loop];
      return double(1 + more);
    };
    together_ *= count * 0.5 * (1 / beside(0) + 1 / beside(word_ - aligned_));
    together_ = std::max(together_, 1.0);
    apart_ *= count;
    span_ += (blocks(loop) - 1) * step_[loop];
    run_ = false;
  }

  const SpatialUnit& unit_;
  const SpatialSizes& size_;
  const int own_;
  const int64_t line_, word_, bytes_, last_;
  const SpatialSizes step_;
  int64_t aligned_ = 1;
  uint32_t few_ = 0;
  // Of the rows of the loops so far: the bytes from the first to the last one; loops whose rows one
  // access may serve; accesses where all fit one line, and where they do not; the share of places
  // where they do; whether rows go on where the last ones ended, and whether some overlap.
  int64_t span_ = 0;
  uint32_t in_span_ = 0;
  double together_ = 1, apart_ = 2, fitting_ = 0;
  bool run_ = true, overlap_ = false;
};

}  // namespace

double SpatialUnit::mean_accesses(int factor, const SpatialSizes& size) const {
  MeanRows rows(*this, factor, size);
  return fetches(factor) == 1 ? rows.accesses() : rows.accesses_apart(fetches(factor));
}

}  // namespace tilewright::cost
