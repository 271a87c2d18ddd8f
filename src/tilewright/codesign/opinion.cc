#include "tilewright/codesign/opinion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::codesign {
namespace {

using cost::SpatialUnit;

double number(int64_t value) { return static_cast<double>(value); }

/// A choice of loops as a product of two matrices: loops that move one factor alone, those of the
/// other alone; each with the lanes that the unit has for it.
struct Side {
  double extent = 1, lanes = 1;
  double bytes = 0;           ///< of the factor, once
  double cycles_of_byte = 0;  ///< at the memory port
  double lane_bytes = 1;      ///< that a step reads
};

/// Cycles per byte of runs of `run` bytes.
double port_cycles(const spatial::Design& design, double run, double per_beat) {
  const double burst = std::min(run, number(design.burst_bytes));
  const double beats = std::ceil(burst / per_beat);
  return std::max(number(design.timing.read_latency), beats + design.timing.burst_gap) / burst;
}

double run_of(const cost::SpatialTensor& tensor, double bytes) {
  return tensor.packed ? bytes : number(tensor.dims.back().extent * tensor.element_bytes);
}

Side side_of(const SpatialUnit& unit, int factor) {
  const spatial::Design& design = unit.design;
  const int tensor = factor == 0 ? unit.choice.first : unit.choice.second();
  const int other = 1 - tensor, lane = unit.lane_loop[static_cast<size_t>(factor)];
  Side side;
  cost::SpatialBox whole;
  for (int loop = 0; loop < unit.loops; ++loop) {
    const auto l = static_cast<size_t>(loop);
    whole.size[l] = unit.layer.loops[l].extent;
    if (unit.layer.loops[l].reduces || unit.in(unit.moves[static_cast<size_t>(other)], loop))
      continue;
    side.extent *= number(whole.size[l]);
    side.lanes *= number(std::min(unit.lanes[l], whole.size[l]));
  }
  side.bytes = number(unit.transfer(tensor, whole).bytes());
  const double per_beat = unit.gathers[static_cast<size_t>(factor)] ? 1 : design.bus_bytes;
  side.cycles_of_byte = port_cycles(
      design, run_of(unit.layer.tensors[static_cast<size_t>(tensor)], side.bytes), per_beat);
  if (unit.gathers[static_cast<size_t>(factor)])
    side.cycles_of_byte = std::max(1.0, side.cycles_of_byte);
  side.lane_bytes = number(
      std::min(unit.lanes[static_cast<size_t>(lane)], whole.size[static_cast<size_t>(lane)]) *
      unit.fetches(factor));
  return side;
}

double store_cycles(const SpatialUnit& unit, double bytes) {
  const spatial::Design& design = unit.design;
  const double run = run_of(unit.layer.tensors[cost::kSpatialResult], bytes);
  const double beats = std::max(1.0, number(design.bank_bytes) / design.bus_bytes);
  const double row =
      std::ceil(run / design.burst_bytes) * design.timing.store_row_overhead +
      std::ceil(run / design.bank_bytes) * (beats + design.timing.store_element_extra);
  return bytes / run * row;
}

/// The fastest of some tiles that fit, of one choice.
LayerOpinion of_choice(const SpatialUnit& unit) {
  const spatial::Design& design = unit.design;
  const Side a = side_of(unit, 0), b = side_of(unit, 1);
  LayerOpinion best;
  best.steps = 1;
  best.store_bytes = number(unit.layer.tensors[cost::kSpatialResult].element_bytes);
  for (const cost::SpatialDim& dim : unit.layer.tensors[cost::kSpatialResult].dims)
    best.store_bytes *= number(dim.extent);
  for (int loop = 0; loop < unit.loops; ++loop) {
    const auto l = static_cast<size_t>(loop);
    best.steps *= number(cost::ceil_div(unit.layer.loops[l].extent, unit.lanes[l]));
  }
  const double line = number(unit.line_bytes());
  const double accesses = (a.lane_bytes + (unit.stationary ? 0 : b.lane_bytes)) / line;
  const double array = best.steps * std::max(1.0, accesses);
  const double store = store_cycles(unit, best.store_bytes);
  const double overhead =
      number(design.timing.compute_overhead + 1 + unit.fill) + (unit.stationary ? design.rows : 0);
  // Two copies of each buffer; sums have four bytes, and what stays a part of the same memory.
  const double sums =
      (number(design.local_bytes()) - (unit.stationary ? number(design.units()) : 0.0)) / 8;
  const double spad = number(design.spad_bytes()) / 2;
  best.cycles = std::numeric_limits<double>::infinity();
  for (double wide = std::min(b.lanes, b.extent);; wide = std::min(2 * wide, b.extent)) {
    for (double high = std::clamp(sums / wide, a.lanes, a.extent), tries = 0; tries < 4;
         high = std::max(high / 2, a.lanes), ++tries) {
      const double over_a = std::ceil(a.extent / high), over_b = std::ceil(b.extent / wide);
      const double held_a = a.bytes * high / a.extent, held_b = b.bytes * wide / b.extent;
      double loads_a = over_b, loads_b = over_a, pieces = 1;
      const double cycles_a = a.bytes * a.cycles_of_byte, cycles_b = b.bytes * b.cycles_of_byte;
      // With all that is summed over in the scratchpad, one of the two stays for a whole row.
      if (held_a + held_b <= spad)
        (cycles_a * over_b < cycles_b * over_a ? loads_b : loads_a) = 1;
      else
        pieces = std::ceil((held_a + held_b) / spad);
      const double load = cycles_a * loads_a + cycles_b * loads_b;
      const double computes = over_a * over_b * pieces;
      const double first = (held_a * a.cycles_of_byte + held_b * b.cycles_of_byte) / pieces;
      const double cycles =
          first + std::max({array + computes * overhead, load, store}) + store / (over_a * over_b);
      if (cycles >= best.cycles) continue;
      best.cycles = cycles;
      best.load_bytes = a.bytes * loads_a + b.bytes * loads_b;
      best.spad_reads = best.steps * a.lane_bytes +
                        (unit.stationary ? b.bytes * over_a : best.steps * b.lane_bytes);
    }
    if (wide >= b.extent) break;
  }
  return best;
}

}  // namespace

LayerOpinion opinion(const spatial::Design& design, const cost::SpatialLayer& layer) {
  LayerOpinion best;
  best.cycles = std::numeric_limits<double>::infinity();
  for (const cost::SpatialChoice& choice : cost::choices(design, layer)) {
    const LayerOpinion one = of_choice(SpatialUnit(design, layer, choice));
    if (one.cycles < best.cycles) best = one;
  }
  return best;
}

}  // namespace tilewright::codesign
