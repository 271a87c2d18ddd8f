// Time and traffic of a layer on a design under a mapping, by docs/spatial-timing.md: counts are
// exact, cycles a prediction (the program is followed tile by tile, what arrays read row by row,
// and LOADs piece by piece, but a loop's equal iterations are added up, and a LOAD and an array
// that both want the banks for long slow each other down as they did so far). Searches compare
// mappings by a quicker one, in which what arrays read and how they wait are means.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/cost/spatial/timeline.h"

namespace tilewright::cost {

enum class SpatialBinds { Steps, Scratchpad, Load, Store, Fetch };
std::string_view name(SpatialBinds binds);

struct SpatialTraffic {
  int64_t transfers = 0;  ///< LOADs of a factor, STOREs of the result
  int64_t bytes = 0;      ///< of DRAM
  int64_t bursts = 0;
  int64_t padding = 0;  ///< bytes of zeros written beside them
  friend bool operator==(const SpatialTraffic&, const SpatialTraffic&) = default;
};

struct SpatialCost {
  double cycles = 0;
  int64_t steps = 0, computes = 0, instructions = 0;
  std::array<SpatialTraffic, kSpatialTensors> dram;  ///< by tensor of the layer
  /// Bytes that the array reads from the scratchpad, by factor of the layer.
  std::array<int64_t, 2> spad_reads{};
  /// Cycles in which each module works; what an array that is never starved would take.
  double load = 0, compute = 0, store = 0, fed = 0;
  SpatialBinds binds = SpatialBinds::Steps;

  int64_t dram_bytes() const { return dram[0].bytes + dram[1].bytes + dram[2].bytes; }
};

/// What LOADs or STOREs of a tensor's tiles take, each distinct tile once.
struct SpatialMoved {
  SpatialTraffic traffic;
  double cycles = 0;
  double first = 0;  ///< of the first LOAD
};

/// What the array does under a mapping, whatever the order and the copies.
struct SpatialWork {
  int64_t steps = 1, computes = 1;
  std::array<int64_t, 2> spad_reads{};  ///< bytes, by factor of the layer
};

/// cost::rough_energy of a tile's mappings: `all` but LOADs, and what LOADs of each factor of the
/// layer take each time that a program goes through all of its tiles.
struct SpatialEnergy {
  double all = 0;
  std::array<double, 2> loads{};
  double of(const std::array<int64_t, 2>& repeats) const {
    return all + loads[0] * double(repeats[0]) + loads[1] * double(repeats[1]);
  }
};

/// Why a mapping cannot run: memory, tensor and KiB; empty: it fits.
std::vector<std::string> misfits(const spatial::Design& design, const SpatialLayer& layer,
                                 const SpatialMapping& mapping);

/// Costs of mappings of one choice; remembers what depends on tiles only, so one per thread.
class SpatialEvaluator {
 public:
  SpatialEvaluator(const spatial::Design& design, const SpatialLayer& layer,
                   const SpatialChoice& choice);
  SpatialEvaluator(SpatialEvaluator&&) = default;

  const SpatialUnit& unit() const { return unit_; }
  bool fits(const SpatialMapping& mapping) const;
  /// The same; `places`: bytes of all buffers of the factors, and sums of the result for each part
  /// of the private memory.
  bool fits_in(const SpatialSizes& tile, const std::array<int64_t, kSpatialTensors>& places) const;
  /// Depends on the loops that move the tensor alone, and is counted once for their sizes.
  const SpatialMoved& moved(int tensor, const SpatialSizes& tile);
  SpatialWork work(const SpatialSizes& tile) const;
  SpatialEnergy energy(const SpatialSizes& tile);
  double energy(const SpatialMapping& mapping);
  /// No mapping of the choice takes less.
  double least_energy() const;
  /// Every row that the array reads is followed.
  SpatialCost cost(const SpatialMapping& mapping);
  /// The times alone, with means for the accesses of the scratchpad: quick, to compare mappings.
  SpatialTimeline mean_times(const SpatialMapping& mapping);
  double cycles(const SpatialMapping& mapping) { return mean_times(mapping).end; }
  /// The same; infinite where it is not below the limit, which shows sooner.
  double cycles_below(const SpatialMapping& mapping, double limit);
  /// No order and no number of copies takes fewer cycles; `order`: reads again what it makes
  /// necessary.
  double least(const SpatialSizes& tile, const int* order = nullptr);
  /// The same from what is known of the tile: its steps and COMPUTEs, and what is moved once.
  double least(double steps, double computes,
               const std::array<const SpatialMoved*, kSpatialTensors>& moved) const;
  /// Cycles before the first COMPUTE, at least: its operands come, and instructions before that.
  double before_computes(const SpatialMoved& one, const SpatialMoved& other) const {
    return before_loads() + one.first + other.first;
  }
  /// Whether all COMPUTEs of this tile, and the STORE behind them, take so many cycles. Slower than
  /// `least`, and sharper.
  bool computes_take(const SpatialSizes& tile, double cycles);
  /// Cycles of a COMPUTE beside its steps, at least.
  double least_overhead() const;

 private:
  SpatialMoved count(int tensor, const SpatialSizes& tile);
  void add_biases(int tensor, const SpatialSizes& tile, SpatialMoved& all);
  /// Spans of a dimension's tiles that differ, and how many tiles have each.
  using Spans = std::vector<std::pair<SpatialSpan, int64_t>>;
  const Spans& spans(int tensor, size_t dim, const SpatialSizes& tile);
  int64_t repeats(int tensor, const SpatialMapping& mapping) const;

  struct Hash {
    size_t operator()(const SpatialSizes& sizes) const;
  };
  SpatialTileCosts& costs_of(const SpatialSizes& tile);
  double before_loads() const;  ///< cycles

  SpatialUnit unit_;
  std::optional<SpatialTileCosts> costs_;  ///< of the latest tile
  std::array<std::unordered_map<SpatialSizes, SpatialMoved, Hash>, kSpatialTensors> memo_;
  std::array<const std::pair<const SpatialSizes, SpatialMoved>*, kSpatialTensors> latest_{};
  std::array<std::array<std::unordered_map<int64_t, Spans>, kSpatialDims>, kSpatialTensors> spans_;
};

SpatialCost evaluate(const spatial::Design& design, const SpatialLayer& layer,
                     const SpatialMapping& mapping);

/// Cycles that no mapping beats: steps of the best choice with its padding, at their cycles per
/// step; each factor's bytes once; the result's bytes once. Infinite: the unit has no choice of
/// loops for the layer.
double lower_bound(const spatial::Design& design, const SpatialLayer& layer);

}  // namespace tilewright::cost
