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

/// What moves a position along a dimension of a tensor.
struct Moves {
  double own = 1,
         other = 1;   ///< positions by the loops asked for; by others that are not summed over
  double stride = 1;  ///< of the loops asked for
  double taps = 1;    ///< positions that the window of one position spans
};

Moves moves_of(const SpatialUnit& unit, const cost::SpatialDim& dim, uint32_t own) {
  Moves moves;
  for (const cost::SpatialTerm& term : dim.terms) {
    const cost::SpatialLoop& loop = unit.layer.loops[static_cast<size_t>(term.loop)];
    if (loop.reduces) {
      moves.taps += number(term.stride * (loop.extent - 1));
    } else if (unit.in(own, term.loop)) {
      moves.own *= number(loop.extent);
      moves.stride = number(term.stride);
    } else {
      moves.other *= number(loop.extent);
    }
  }
  return moves;
}

/// Bytes of a tensor that follow each other in DRAM where a tile has `held` positions of the loops
/// `own`, the inner ones first, and all of those that are summed over.
double run_of(const SpatialUnit& unit, int index, uint32_t own, double held) {
  const cost::SpatialTensor& tensor = unit.layer.tensors[static_cast<size_t>(index)];
  double run = number(tensor.element_bytes);
  for (size_t dim = tensor.dims.size(); dim-- > 0;) {
    const Moves moves = moves_of(unit, tensor.dims[dim], own);
    // Rows between those that a window of one row needs are not loaded.
    const bool skips = moves.stride > 1 && moves.taps == 1 && dim + 1 < tensor.dims.size();
    if (moves.other > 1 || skips) break;
    const double share = std::min(1.0, held / moves.own);
    run *= std::max(1.0, number(tensor.dims[dim].extent) * share);
    if (share < 1) break;
    held /= moves.own;
  }
  return run;
}

/// Bytes of a tensor, loaded in tiles with `held` positions of the loops `own`, the inner ones
/// first, and all of those that are summed over: windows of tiles beside each other overlap.
double bytes_in_tiles(const SpatialUnit& unit, int index, uint32_t own, double held) {
  const cost::SpatialTensor& tensor = unit.layer.tensors[static_cast<size_t>(index)];
  double bytes = number(tensor.element_bytes);
  for (size_t dim = tensor.dims.size(); dim-- > 0;) {
    const Moves moves = moves_of(unit, tensor.dims[dim], own);
    const double positions = moves.own * moves.other;
    const double tile = std::clamp(held, 1.0, positions);
    const double window = moves.taps > 1 ? (tile - 1) * moves.stride + moves.taps : tile;
    bytes *= positions / tile * std::min(window, number(tensor.dims[dim].extent));
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

/// A choice of loops in tiles of `high` positions of the first side and `wide` of the other.
class Tiles {
 public:
  explicit Tiles(const SpatialUnit& unit)
      : unit_(unit), a_(side_of(unit, 0)), b_(side_of(unit, 1)), sums_(sums_held(unit, a_, b_)) {
    const cost::SpatialTensor& result = unit.layer.tensors[cost::kSpatialResult];
    store_bytes_ = number(result.element_bytes);
    for (const cost::SpatialDim& dim : result.dims) store_bytes_ *= number(dim.extent);
    for (int loop = 0; loop < unit.loops; ++loop)
      steps_ *= number(unit.layer.loops[static_cast<size_t>(loop)].extent) / lanes_of(unit, loop);
    accesses_ = a_.row_accesses + (unit.stationary ? 0 : b_.row_accesses);
  }

  /// Of some that fit. A tile has a row of lanes at least: with more of the other loops not even
  /// one copy of its sums would fit.
  Scored best() const {
    Scored found;
    for (double wide = b_.lanes; wide == b_.lanes || wide * a_.lanes <= 2 * sums_;
         wide = std::min(2 * wide, b_.most)) {
      double high = std::clamp(sums_ / wide, a_.lanes, a_.most);
      for (int tries = 0; tries < 4; ++tries, high = std::max(high / 2, a_.lanes)) {
        const Scored tile = scored(high, wide);
        if (tile.score < found.score) found = tile;
      }
      if (wide >= b_.most) break;
    }
    return found;
  }

 private:
  Scored scored(double high, double wide) const {
    const spatial::Design& design = unit_.design;
    const double over_a = std::ceil(a_.extent / high), over_b = std::ceil(b_.extent / wide);
    const Loads in_a = loads_of(unit_, 0, a_, high), in_b = loads_of(unit_, 1, b_, wide);
    const double spad = number(design.spad_bytes()) / 2;  // two copies of each buffer
    double loads_a = over_b, loads_b = over_a, pieces = 1;
    // With all that is summed over in the scratchpad, one of the two stays for a whole row.
    if (in_a.tile + in_b.tile <= spad)
      (in_a.cycles * over_b < in_b.cycles * over_a ? loads_b : loads_a) = 1;
    else
      pieces = std::ceil((in_a.tile + in_b.tile) / spad);
    const double store =
        store_cycles(unit_, store_bytes_,
                     std::max(run_of(unit_, cost::kSpatialResult, a_.loops, high),
                              run_of(unit_, cost::kSpatialResult, b_.loops, wide)));
    const double load = in_a.cycles * loads_a + in_b.cycles * loads_b;
    const double first = (in_a.cycles * high / a_.extent + in_b.cycles * wide / b_.extent) / pieces;
    const double overhead = number(design.timing.compute_overhead + 1 + unit_.fill) +
                            (unit_.stationary ? design.rows : 0);
    const double array = steps_ * std::max(1.0, accesses_);
    const double busy = std::max({array + over_a * over_b * pieces * overhead, load, store});
    // While the array works, a LOAD's write finds its bank taken as often as steps read it.
    const double writes = in_a.writes * loads_a + in_b.writes * loads_b;
    const double waits = writes * std::min(1.0, accesses_) * array / busy;
    const double loaded = in_a.bytes * loads_a + in_b.bytes * loads_b;
    const double reads =
        steps_ * a_.lane_bytes + (unit_.stationary ? b_.bytes * over_a : steps_ * b_.lane_bytes);
    const double cycles = first + busy + waits + store / (over_a * over_b);
    const double energy = cost::rough_energy(unit_, steps_, reads + loaded, loaded);
    return {.opinion = {.cycles = cycles,
                        .steps = steps_,
                        .load_bytes = loaded,
                        .store_bytes = store_bytes_,
                        .spad_reads = reads},
            .score = cycles * cost::energy_factor(energy)};
  }

  const SpatialUnit& unit_;
  Side a_, b_;
  double sums_;             ///< of a tile, at most
  double steps_ = 1;        ///< of the array
  double accesses_ = 0;     ///< of the scratchpad, in a step
  double store_bytes_ = 0;  ///< of the result
};

}  // namespace

std::optional<LayerOpinion> opinion(const spatial::Design& design,
                                    const cost::SpatialLayer& layer) {
  Scored best;
  for (const cost::SpatialChoice& choice : cost::choices(design, layer)) {
    const SpatialUnit unit(design, layer, choice);
    const Scored one = Tiles(unit).best();
    if (one.score < best.score) best = one;
  }
  if (std::isinf(best.score)) return std::nullopt;
  return best.opinion;
}

}  // namespace tilewright::codesign
