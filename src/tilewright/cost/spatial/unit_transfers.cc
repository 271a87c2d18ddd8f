// Cycles of LOADs and STOREs, and the pieces in which they go to the scratchpad
// (docs/spatial-timing.md, 3 and 5).
#include <cmath>
#include <numeric>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {

int64_t SpatialUnit::piece(int factor, const SpatialSizes& size) const {
  const int loop = lane_loop[factor];
  const SpatialTensor& tensor = layer.tensors[factor ? choice.second() : choice.first];
  const bool scattered =
      !gathers_in(factor, size) && !tensor.packed && !skewed[factor] && size[loop] > lanes[loop];
  return scattered ? lanes[loop] : 0;
}

/// Of each element or piece, if the next one lies `pitch` bytes further: those in one line share an
/// access. A line begins with the word of the first element that it has, wherever that begins.
double SpatialUnit::accesses_each(int64_t pitch) const {
  if (pitch >= line_bytes()) return 1;
  // 32 bits and a word of a power of two: divisions are most of what this takes.
  const auto line = uint32_t(line_bytes()), word = uint32_t(design.bank_bytes);
  const auto step = uint32_t(pitch);
  constexpr uint32_t kStarts = 4, kLines = 16;
  uint32_t elements = 0, accesses = 0;
  for (uint32_t start = 0; start < kStarts; ++start) {
    uint32_t offset = std::min(step, word) * start / kStarts;
    for (uint32_t at = 0; at < kLines; ++at, ++accesses) {
      const uint32_t in_line = (line - 1 - offset) / step + 1;
      elements += in_line;
      offset = (offset + in_line * step) & (word - 1);
    }
  }
  return double(accesses) / double(elements);
}

double SpatialUnit::accesses_per_piece(int factor, const SpatialSizes& size) const {
  const int64_t bytes = piece(factor, size);
  const int loop = lane_loop[factor];
  if (bytes > design.bank_bytes)
    return pieces_of_row(factor, size) * double(bytes) / double(size[loop]);
  const double blocks = double(ceil_div(size[loop], lanes[loop]));
  return std::min(1.0, accesses_each(strides(factor, size)[loop]) + 1 / blocks);
}

double SpatialUnit::accesses_of_gathered(int factor, const SpatialSizes& size) const {
  const SpatialPlaces at = places(factor, size);
  const int64_t pitch = gather_pitch(factor, size);
  if (at.phases == 1 || pitch != 1) return accesses_each(pitch);
  // Neighbours lie a phase apart; the first of the next ones is behind those again.
  const int64_t row = at.phases * at.phase;
  return row > line_bytes() ? 1.0 : accesses_each(row) / double(row);
}

double SpatialUnit::write_accesses(int factor, const SpatialTransfer& t,
                                   const SpatialSizes& size) const {
  // Zeros come in pieces that lie as what is there.
  const double bytes = double(t.padding + t.bytes() - kBiasBytes * t.biases);
  if (gathers_in(factor, size)) return bytes * accesses_of_gathered(factor, size);
  if (const int64_t width = piece(factor, size))
    return bytes / double(width) * accesses_per_piece(factor, size);
  return bytes / double(line_bytes());
}

double SpatialUnit::pieces_of_row(int factor, const SpatialSizes& size) const {
  const int64_t line = line_bytes(), word = design.bank_bytes;
  const int64_t row = size[lane_loop[factor]], width = piece(factor, size);
  // Blocks that begin late in a word go on in the next line.
  const int64_t aligned = std::gcd(width, word), last = row % width;
  const auto pieces = [&](int64_t bytes) {
    const int64_t tail = bytes - (ceil_div(bytes, line) - 1) * line;
    const double late = double(line - tail) / double(aligned) + 1;
    const double beyond = 1 - std::min(1.0, std::floor(late) * double(aligned) / double(word));
    return double(ceil_div(bytes, line)) + beyond;
  };
  const int64_t whole = row / width;
  return double(whole) * pieces(width) + (last ? pieces(last) : 0);
}

double SpatialUnit::zeros_at_once(int factor, const SpatialSizes& size) const {
  if (gathers_in(factor, size)) return 1;
  const int64_t width = piece(factor, size), line = line_bytes();
  if (width == 0) return double(line);
  const int64_t row = size[lane_loop[factor]];
  return double(row) / pieces_of_row(factor, size);
}

double SpatialUnit::bytes_at_once(int factor, const SpatialTransfer& t,
                                  const SpatialSizes& size) const {
  if (gathers_in(factor, size)) return 1;
  const int64_t beat = design.bus_bytes, width = piece(factor, size);
  if (width == 0 && t.stretch == 0) return double(std::min(beat, line_bytes()));
  if (width == 0) {
    // Pieces end with a beat and with zeros, which take cycles of their own: before and behind what
    // is there, if there are more than one.
    const int64_t sides = t.stretch_zeros > 1 ? 2 : 1;
    const int64_t zeros = sides * ceil_div(t.stretch_zeros, sides * line_bytes());
    const int64_t stretches = t.run / t.stretch, meet = t.run / std::lcm(t.stretch, beat);
    return double(t.run) / double(ceil_div(t.run, beat) + stretches * (1 + zeros) - meet);
  }
  // Pieces end with a block of lanes, with the lanes' dimension and with a beat; some of these ends
  // meet. In a run of whole rows of lanes beats come to every multiple of `common` in a row.
  const int64_t row = std::min(t.run, size[lane_loop[factor]]);
  const double blocks = pieces_of_row(factor, size) * double(row) / double(size[lane_loop[factor]]);
  double ends = double(ceil_div(row, beat)), meet;
  if (t.run == row) {
    const int64_t inside = (row - 1) / std::lcm(beat, width);
    meet = double(inside + 1);
  } else {
    const int64_t common = std::gcd(beat, row), places = row / common;
    ends = double(row) / double(beat);
    meet = ends * double(ceil_div(row, std::lcm(common, width))) / double(places);
  }
  return double(row) / (blocks + ends - meet);
}

namespace {

/// Of one run: words of biases have a cycle each, a beat that they share with weights one more.
double biased_load_cycles(const SpatialUnit& unit, const SpatialTransfer& t, double per_beat) {
  const spatial::Design& d = unit.design;
  const spatial::Timing& time = d.timing;
  constexpr int64_t kWord = SpatialUnit::kBiasBytes;
  int64_t biases = kWord * t.biases, cycles = time.read_latency, latest = 0;
  // Bursts of so many beats each, behind those before.
  const auto follow = [&](int64_t beats, int64_t times) {
    if (times == 0) return;
    cycles += latest ? std::max<int64_t>(time.read_latency, latest + time.burst_gap) : 0;
    cycles += (times - 1) * std::max<int64_t>(time.read_latency, beats + time.burst_gap);
    latest = beats;
  };
  const auto beats_of = [&](int64_t bytes) {
    return static_cast<int64_t>(std::ceil(double(bytes) / per_beat));
  };
  int64_t left = t.run;
  while (biases > 0) {
    const int64_t burst = std::min<int64_t>(left, d.burst_bytes);
    const int64_t bias = std::min(biases, burst);
    left -= burst;
    biases -= bias;
    const int64_t shared = std::min(burst - bias, -bias & (d.bus_bytes - 1));
    follow(bias / kWord + (shared > 0) + beats_of(burst - bias - shared), 1);
  }
  follow(beats_of(d.burst_bytes), left / d.burst_bytes);
  if (left % d.burst_bytes) follow(beats_of(left % d.burst_bytes), 1);
  return double(time.load_overhead - 1 + cycles + latest - 1 + 2);
}

}  // namespace

double SpatialUnit::load_cycles(int factor, const SpatialTransfer& t,
                                const SpatialSizes& size) const {
  const spatial::Timing& time = design.timing;
  // Zeros come in pieces that lie side by side, as what is there; those inside of runs have their
  // cycles between the beats.
  const bool inside_runs = t.stretch > 0 && !gathers_in(factor, size) && !piece(factor, size);
  const int64_t outside = t.padding - (inside_runs ? t.bytes() / t.stretch * t.stretch_zeros : 0);
  const auto padding = int64_t(std::ceil(double(outside) / zeros_at_once(factor, size)));
  if (t.rows == 0) return double(time.load_overhead + padding);
  const double per_beat = bytes_at_once(factor, t, size);
  const int64_t bursts_per_row = ceil_div(t.run, design.burst_bytes);
  auto beats_of = [&](int64_t bytes) { return int64_t(std::ceil(double(bytes) / per_beat)); };
  const int64_t longest = beats_of(std::min<int64_t>(t.run, design.burst_bytes));
  const int64_t tail = beats_of(t.run - (bursts_per_row - 1) * design.burst_bytes);
  auto to_next = [&](int64_t beats) {
    return std::max<int64_t>(time.read_latency, beats + time.burst_gap);
  };
  if (t.biases) return biased_load_cycles(*this, t, per_beat);
  const int64_t row = (bursts_per_row - 1) * to_next(longest) + to_next(tail);
  const int64_t beats = time.read_latency + t.rows * row - to_next(tail) + tail - 1;
  const int64_t writes = padding + t.rows * ((bursts_per_row - 1) * longest + tail) - 1;
  return double(time.load_overhead - 1 + std::max(beats, writes) + 2);
}

/// Elements end with a burst and with a row of the last axis.
int64_t SpatialUnit::elements_of_run(const SpatialTransfer& t) const {
  const int64_t word = design.bank_bytes, burst = design.burst_bytes;
  const int64_t lines = ceil_div(t.run, t.line);
  if (t.run <= burst || lines == 1) return lines * ceil_div(t.line, word);
  // Bursts cut lines in the same way again after so many.
  const int64_t period = std::min(lines, burst / std::gcd(burst, t.line));
  const auto of_lines = [&](int64_t count) {
    int64_t elements = 0;
    for (int64_t line = 0; line < count; ++line) {
      const int64_t head = std::min(t.line, burst - line * t.line % burst), rest = t.line - head;
      elements +=
          ceil_div(head, word) + rest / burst * (burst / word) + ceil_div(rest % burst, word);
    }
    return elements;
  };
  return lines / period * of_lines(period) + of_lines(lines % period);
}

int64_t SpatialUnit::store_cycles(const SpatialTransfer& t) const {
  const int64_t element = design.bank_bytes;
  const int64_t beats = std::max<int64_t>(1, element / design.bus_bytes);
  return 2 + bursts(t) * design.timing.store_row_overhead +
         t.rows * elements_of_run(t) * (beats + design.timing.store_element_extra);
}

}  // namespace tilewright::cost
