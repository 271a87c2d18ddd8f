#include "tilewright/codesign/opinion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/cost/spatial/score.h"

namespace tilewright::codesign {
namespace {

using cost::SpatialUnit;

double number(int64_t value) { return static_cast<double>(value); }

/// A choice of loops as a product of two matrices: loops that move one factor alone, those of the
/// other alone; each with the lanes that the unit has for it.
struct Side {
  double extent = 1, lanes = 1;
  double most = 1;           ///< positions of its loops that a tile can have
  double bytes = 0;          ///< of the factor, once
  double per_beat = 8;       ///< bytes that the memory port takes in a cycle
  uint32_t loops = 0;        ///< its own, as bits
  double lane_bytes = 1;     ///< that a step reads
  double row_accesses = 1;   ///< of the scratchpad, for these
  double bytes_at_once = 1;  ///< that a LOAD writes
};

/// Cycles per byte of runs of `run` bytes.
double port_cycles(const spatial::Design& design, double run, double per_beat) {
  const double burst = std::min(run, number(design.burst_bytes));
  const double beats = std::ceil(burst / per_beat);
  return std::max(number(design.timing.read_latency), beats + design.timing.burst_gap) / burst;
}

/// Bytes of a tensor that follow each other in DRAM where a tile has `held` positions of the loops
/// `own`, the inner ones first, and all of those that are summed over.
double run_of(const SpatialUnit& unit, int index, uint32_t own, double held) {
  const cost::SpatialTensor& tensor = unit.layer.tensors[static_cast<size_t>(index)];
  double run = number(tensor.element_bytes);
  for (size_t dim = tensor.dims.size(); dim-- > 0;) {
    const cost::SpatialDim& at = tensor.dims[dim];
    double positions = 1, stride = 1;
    bool sums = false, others = false;
    for (const cost::SpatialTerm& term : at.terms) {
      const cost::SpatialLoop& loop = unit.layer.loops[static_cast<size_t>(term.loop)];
      if (loop.reduces) {
        sums = sums || loop.extent > 1;
      } else if (unit.in(own, term.loop)) {
        positions *= number(loop.extent);
        stride = number(term.stride);
      } else {
        others = others || loop.extent > 1;
      }
    }
    // Rows between those that a window of one row needs are not loaded.
    const bool skips = stride > 1 && !sums && dim + 1 < tensor.dims.size();
    if (others || skips) break;
    const double share = std::min(1.0, held / positions);
    run *= std::max(1.0, number(at.extent) * share);
    if (share < 1) break;
    held /= positions;
  }
  return run;
}

/// Bytes of a tensor, loaded in tiles with `held` positions of the loops `own`, the inner ones
/// first, and all of those that are summed over: windows of tiles beside each other overlap.
double bytes_in_tiles(const SpatialUnit& unit, int index, uint32_t own, double held) {
  const cost::SpatialTensor& tensor = unit.layer.tensors[static_cast<size_t>(index)];
  double bytes = number(tensor.element_bytes);
  for (size_t dim = tensor.dims.size(); dim-- > 0;) {
    const cost::SpatialDim& at = tensor.dims[dim];
    double positions = 1, stride = 1, taps = 1;
    for (const cost::SpatialTerm& term : at.terms) {
      const double extent = number(unit.layer.loops[static_cast<size_t>(term.loop)].extent);
      if (unit.layer.loops[static_cast<size_t>(term.loop)].reduces) {
        taps += number(term.stride) * (extent - 1);
      } else {
        positions *= extent;
        if (unit.in(own, term.loop)) stride = number(term.stride);
      }
    }
    const double tile = std::clamp(held, 1.0, positions);
    const double window = taps > 1 ? (tile - 1) * stride + taps : tile;
    bytes *= positions / tile * std::min(window, number(at.extent));
    held = std::max(1.0, held / positions);
  }
  return bytes;
}

/// Accesses of the scratchpad for a row of lanes. Rows that follow each other share these; rows
/// that a tap moves begin anywhere in a word, so that some of those that nearly fill a line need
/// two.
double row_accesses(const SpatialUnit& unit, int factor, double row) {
  const double line = number(unit.line_bytes());
  const double shared = row * number(unit.fetches(factor)) / line;
  if (!unit.skewed[static_cast<size_t>(factor)] || 2 * row <= line || row > line) return shared;
  const double fit = (line - row + 1) / number(unit.design.bank_bytes);
  return std::max(shared, 2 - std::min(1.0, fit));
}

/// Lanes for a loop that are at work, in the mean of its blocks: 243 of 256 for 728 outputs, and
/// 364 of 1 024, as a tile has biases for 512.
double lanes_of(const SpatialUnit& unit, int loop) {
  const auto l = static_cast<size_t>(loop);
  const int64_t extent = unit.layer.loops[l].extent;
  const int64_t blocks = cost::ceil_div(extent, std::min(unit.lanes[l], unit.longest_tile(loop)));
  return number(extent) / number(blocks);
}

/// What an access of a LOAD writes: what lies side by side, up to a line. Lanes that are not
/// neighbours in DRAM come one by one, each to another row; short rows share a line.
double bytes_at_once(const SpatialUnit& unit, int factor, double row) {
  const auto f = static_cast<size_t>(factor);
  const int tensor = factor == 0 ? unit.choice.first : unit.choice.second();
  const double line = number(unit.line_bytes());
  if (unit.gathers[f]) return unit.skewed[f] ? 1 : std::max(1.0, line / row);
  const auto lane = static_cast<size_t>(unit.lane_loop[f]);
  const bool whole = unit.skewed[f] || unit.layer.tensors[static_cast<size_t>(tensor)].packed ||
                     unit.layer.loops[lane].extent <= unit.lanes[lane];
  return whole ? line : std::min(line, row);
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
    side.loops |= uint32_t{1} << loop;
    side.extent *= number(whole.size[l]);
    side.lanes *= lanes_of(unit, loop);
    side.most *= number(std::min(unit.longest_tile(loop), whole.size[l]));
  }
  side.bytes = number(unit.transfer(tensor, whole).bytes());
  side.per_beat = unit.gathers[static_cast<size_t>(factor)] ? 1.0 : number(design.bus_bytes);
  const double row = lanes_of(unit, lane);
  side.bytes_at_once = bytes_at_once(unit, factor, row);
  side.lane_bytes = row * number(unit.fetches(factor));
  side.row_accesses = row_accesses(unit, factor, row);
  return side;
}

/// The factor's LOADs, in tiles with `held` positions of its own loops.
struct Loads {
  double bytes = 0;   ///< of each tile once
  double tile = 0;    ///< bytes of a tile
  double cycles = 0;  ///< for each tile once
  double writes = 0;  ///< accesses of the scratchpad
};

Loads loads_of(const SpatialUnit& unit, int factor, const Side& side, double held) {
  const int tensor = factor == 0 ? unit.choice.first : unit.choice.second();
  const bool packed = unit.layer.tensors[static_cast<size_t>(tensor)].packed;
  Loads loads;
  loads.bytes = packed ? side.bytes : bytes_in_tiles(unit, tensor, side.loops, held);
  loads.tile = loads.bytes * held / side.extent;
  const double run = packed ? loads.tile : run_of(unit, tensor, side.loops, held);
  const double cycles = port_cycles(unit.design, run, side.per_beat);
  loads.cycles = loads.bytes * (side.per_beat > 1 ? cycles : std::max(1.0, cycles));
  loads.writes = loads.bytes / side.bytes_at_once;
  return loads;
}

double store_cycles(const SpatialUnit& unit, double bytes, double run) {
  const spatial::Design& design = unit.design;
  const double beats = std::max(1.0, number(design.bank_bytes) / design.bus_bytes);
  const double row =
      std::ceil(run / design.burst_bytes) * design.timing.store_row_overhead +
      std::ceil(run / design.bank_bytes) * (beats + design.timing.store_element_extra);
  return bytes / run * row;
}

/// Sums of a tile, of which there are two copies. They have four bytes, and what stays a part of
/// the same memory; a part of it whose lane has no position of the layer holds none.
double sums_held(const SpatialUnit& unit, const Side& a, const Side& b) {
  const double bytes =
      number(unit.design.local_bytes()) - (unit.stationary ? number(unit.design.units()) : 0.0);
  return std::max(1.0, std::floor(bytes / (8.0 * number(unit.parts)))) * a.lanes * b.lanes;
}

/// What is believed of a mapping, and how good it would be.
struct Scored {
  LayerOpinion opinion;
  double score = std::numeric_limits<double>::infinity();
};

/// The best of some tiles that fit, of one choice.
Scored of_choice(const SpatialUnit& unit) {
  const spatial::Design& design = unit.design;
  const Side a = side_of(unit, 0), b = side_of(unit, 1);
  Scored found;
  LayerOpinion& best = found.opinion;
  best.steps = 1;
  best.store_bytes = number(unit.layer.tensors[cost::kSpatialResult].element_bytes);
  for (const cost::SpatialDim& dim : unit.layer.tensors[cost::kSpatialResult].dims)
    best.store_bytes *= number(dim.extent);
  for (int loop = 0; loop < unit.loops; ++loop)
    best.steps *= number(unit.layer.loops[static_cast<size_t>(loop)].extent) / lanes_of(unit, loop);
  const double accesses = a.row_accesses + (unit.stationary ? 0 : b.row_accesses);
  const double taken = std::min(1.0, accesses);
  const double array = best.steps * std::max(1.0, accesses);
  const double overhead =
      number(design.timing.compute_overhead + 1 + unit.fill) + (unit.stationary ? design.rows : 0);
  const double sums = sums_held(unit, a, b);
  const double spad = number(design.spad_bytes()) / 2;  // two copies of each buffer
  for (double wide = b.lanes;; wide = std::min(2 * wide, b.most)) {
    // A tile has a row of lanes at least: with more of the other loops not even one copy of its
    // sums would fit.
    if (wide > b.lanes && wide * a.lanes > 2 * sums) break;
    for (double high = std::clamp(sums / wide, a.lanes, a.most), tries = 0; tries < 4;
         high = std::max(high / 2, a.lanes), ++tries) {
      const double over_a = std::ceil(a.extent / high), over_b = std::ceil(b.extent / wide);
      const Loads in_a = loads_of(unit, 0, a, high), in_b = loads_of(unit, 1, b, wide);
      double loads_a = over_b, loads_b = over_a, pieces = 1;
      const double store =
          store_cycles(unit, best.store_bytes,
                       std::max(run_of(unit, cost::kSpatialResult, a.loops, high),
                                run_of(unit, cost::kSpatialResult, b.loops, wide)));
      // With all that is summed over in the scratchpad, one of the two stays for a whole row.
      if (in_a.tile + in_b.tile <= spad)
        (in_a.cycles * over_b < in_b.cycles * over_a ? loads_b : loads_a) = 1;
      else
        pieces = std::ceil((in_a.tile + in_b.tile) / spad);
      const double load = in_a.cycles * loads_a + in_b.cycles * loads_b;
      const double computes = over_a * over_b * pieces;
      const double first = (in_a.cycles * high / a.extent + in_b.cycles * wide / b.extent) / pieces;
      const double busy = std::max({array + computes * overhead, load, store});
      // While the array works, a LOAD's write finds its bank taken as often as steps read it.
      const double writes = in_a.writes * loads_a + in_b.writes * loads_b;
      const double waits = writes * taken * array / busy;
      const double cycles = first + busy + waits + store / (over_a * over_b);
      const double loaded = in_a.bytes * loads_a + in_b.bytes * loads_b;
      const double reads = best.steps * a.lane_bytes +
                           (unit.stationary ? b.bytes * over_a : best.steps * b.lane_bytes);
      const double score = cycles * cost::energy_factor(cost::rough_energy(unit, best.steps,
                                                                           reads + loaded, loaded));
      if (score >= found.score) continue;
      found.score = score;
      best.cycles = cycles;
      best.load_bytes = loaded;
      best.spad_reads = reads;
    }
    if (wide >= b.most) break;
  }
  return found;
}

}  // namespace

LayerOpinion opinion(const spatial::Design& design, const cost::SpatialLayer& layer) {
  Scored best;
  for (const cost::SpatialChoice& choice : cost::choices(design, layer)) {
    const Scored one = of_choice(SpatialUnit(design, layer, choice));
    if (one.score < best.score) best = one;
  }
  return best.opinion;
}

}  // namespace tilewright::codesign
