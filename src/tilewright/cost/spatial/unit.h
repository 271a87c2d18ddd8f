// A unit that plays a choice of a layer's loops: lanes of each loop, what a step reads, what stays;
// and the cycles of each instruction, by docs/spatial-timing.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/accel/spatial/isa.h"
#include "tilewright/cost/spatial/array_walk.h"
#include "tilewright/cost/spatial/mapping.h"

namespace tilewright::cost {

using SpatialSizes = std::array<int64_t, kSpatialLoops>;

/// Where a tile lies in its loops.
struct SpatialBox {
  SpatialSizes start{}, size{};
};

/// What one LOAD or STORE moves: `rows` runs of `run` bytes each, and zeros around them.
struct SpatialTransfer {
  int64_t rows = 0, run = 0, padding = 0;
  int64_t line = 0;    ///< bytes of a run that follow each other in the sums too (STORE)
  int64_t biases = 0;  ///< words in front of the run, which has their bytes too
  /// Bytes of a run from zeros to zeros, and zeros around those; 0: there are none inside a run.
  int64_t stretch = 0, stretch_zeros = 0;
  int64_t bytes() const { return rows * run; }
};

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// One dimension of a tile: elements that are there, and with the zeros around them.
struct SpatialSpan {
  int64_t there = 0, all = 0;
  bool dense = true;  ///< neighbours in DRAM
  friend bool operator==(const SpatialSpan&, const SpatialSpan&) = default;
};

/// The same in DRAM.
struct SpatialReach {
  SpatialSpan span;
  int64_t step = 1;    ///< elements from one position to the next
  int64_t before = 0;  ///< positions in front of the tensor
  int64_t first = 0;   ///< index of the first position that is there
};

/// Bytes from one element of each dimension to the next.
std::vector<int64_t> pitches(const SpatialTensor& tensor);
/// How many of the last dimensions follow each other in DRAM.
size_t run_dims(const SpatialTensor& tensor, const std::vector<SpatialReach>& reach);

/// How a tile of a factor lies in the scratchpad: a position of a dimension is `pitch` bytes from
/// the one before; the lanes' dimension lies in blocks, or as a whole, innermost.
struct SpatialPlaces {
  std::array<int64_t, kSpatialDims> pitch{};
  /// Bytes from one block of lanes to the next; 0: the lanes' dimension lies as a whole.
  int64_t block = 0;
  /// Whole, with strided lanes: position p lies at p % phases * phase + p / phases, so that lanes
  /// are neighbours.
  int64_t phases = 1, phase = 0;
  int64_t bytes = 0;
};

/// How a COMPUTE's accesses of the scratchpad are counted.
enum class SpatialRows {
  Mean,     ///< by how rows share lines in the mean: quick
  Followed  ///< row after row, as the machine reads them
};

struct SpatialUnit {
  SpatialUnit(const spatial::Design& design, const SpatialLayer& layer,
              const SpatialChoice& choice);

  const spatial::Design& design;
  const SpatialLayer& layer;
  SpatialChoice choice;
  int loops = 0;
  SpatialSizes lanes{};                           ///< of each loop; 1: no role
  std::array<uint32_t, kSpatialTensors> moves{};  ///< loops that move each tensor, as bits
  std::array<int, 2> lane_loop{-1, -1};           ///< whose elements a step reads, by factor
  std::array<int, 2> lane_dim{};                  ///< of the factor that lanes lie along
  std::array<int64_t, 2> lane_stride{1, 1};       ///< of the lanes' loop in that dimension
  std::array<int, kSpatialLoops> inner{};         ///< loops of a COMPUTE, innermost first
  std::array<bool, 2> gathers{};                  ///< lanes are not neighbours in DRAM
  /// The same of a tile of this size, which may have one lane only.
  bool gathers_in(int factor, const SpatialSizes& size) const;
  std::array<bool, 2> skewed{};             ///< rows of lanes overlap: a tap moves them
  bool stationary = false;                  ///< blocks of the second factor stay
  uint32_t block_loops = 0, tap_loops = 0;  ///< that choose the block; inside one (Conv2d)
  int bias_loop = -1;                       ///< whose positions have biases
  int64_t parts = 1;                        ///< of the private memory
  int64_t fill = 0;                         ///< cycles to fill and drain

  bool in(uint32_t mask, int loop) const { return mask >> loop & 1; }
  /// Bytes that lie side by side in the scratchpad: lanes of a factor in a tile of this size.
  int64_t row_bytes(int factor, const SpatialSizes& size) const;
  /// How often a step fetches a row: once, or by each column of an array without links.
  int64_t fetches(int factor) const;
  /// Blocks of lanes outermost, then the other dimensions as in DRAM, then the lanes.
  SpatialPlaces places(int factor, const SpatialSizes& size) const;
  /// Scratchpad bytes between blocks of each loop, for the rows of a factor.
  SpatialSizes strides(int factor, const SpatialSizes& size) const;
  /// Accesses of the scratchpad for all rows of a factor in a COMPUTE, from how they share lines in
  /// the mean.
  double mean_accesses(int factor, const SpatialSizes& size) const;
  /// The rows of factors in a COMPUTE, and of the blocks of the second one that stay.
  RowWalk rows(const SpatialSizes& size) const;
  RowWalk block_rows(const SpatialSizes& size) const;
  /// All of it, as the array goes through a COMPUTE.
  ArrayWalk array_walk(const SpatialSizes& size) const;
  int row_loop_of_blocks() const;  ///< whose positions are rows of a block
  int64_t rows_of_block(const SpatialSizes& size) const;

  /// Elements from one to the next that a tile needs of a dimension: 1, or the stride of its only
  /// loop if rows between need not be loaded (the tile has one tap, the dimension is no run's).
  int64_t skips(int tensor, size_t dim, const SpatialSizes& size) const;
  std::array<std::array<bool, kSpatialDims>, kSpatialTensors> may_skip{};
  /// Sums of the result's dimension follow those of the next one, in the same part.
  std::array<bool, kSpatialDims> joins_next{};
  bool has_biases(int tensor, size_t dim) const;
  SpatialSpan span(int tensor, size_t dim, const SpatialBox& box) const;
  /// spans: of the tensor's dimensions.
  SpatialTransfer transfer(int tensor, const SpatialSpan* spans) const;
  SpatialTransfer transfer(int tensor, const SpatialBox& box) const;
  std::vector<SpatialReach> reach(int tensor, const SpatialBox& box) const;
  /// The instruction, without addresses and biases.
  spatial::Load load(int factor, const SpatialBox& box) const;
  int64_t packed_bytes(const SpatialSizes& size) const;  ///< of a tile of the packed factor
  /// Of a dimension that a tile of this size holds at most, with the zeros around them.
  int64_t elements(int tensor, size_t dim, const SpatialSizes& size) const;
  /// Of one copy, which begins at a word.
  int64_t buffer_bytes(int tensor, const SpatialSizes& tile) const;
  int64_t sums_per_part(const SpatialSizes& tile) const;
  /// Positions of the loop that a tile can have: as many as a COMPUTE counts to, or has biases for.
  int64_t longest_tile(int loop) const;
  /// What instructions cannot say of a tile of this size; null: nothing.
  const char* refuses(const SpatialSizes& tile) const;
  int64_t stationary_per_part(const SpatialSizes& tile) const;

  struct Compute {
    double cycles;
    double accesses;  ///< of the scratchpad
    int64_t steps;
  };
  double load_cycles(int factor, const SpatialTransfer& transfer, const SpatialSizes& size) const;
  int64_t store_cycles(const SpatialTransfer& transfer) const;
  int64_t elements_of_run(const SpatialTransfer& transfer) const;  ///< of a STORE
  Compute compute(const SpatialSizes& size, SpatialRows how) const;
  double compute_overhead() const;  ///< cycles of a COMPUTE beside its steps
  struct RowsRead {
    double cycles, accesses;
  };
  RowsRead read_rows(const SpatialSizes& size, int64_t steps, SpatialRows how) const;
  double read_block(const SpatialSizes& size, double rows, double blocks, SpatialRows how) const;
  /// Accesses of the scratchpad with which a LOAD writes.
  double write_accesses(int factor, const SpatialTransfer& transfer,
                        const SpatialSizes& size) const;
  /// Lanes of a run go to several blocks, a piece of this many bytes to each; 0: to one place.
  int64_t piece(int factor, const SpatialSizes& size) const;
  /// Of a row of lanes that LOAD writes into several blocks.
  double pieces_of_row(int factor, const SpatialSizes& size) const;
  /// What LOAD takes in a cycle, in the mean: zeros; bytes of a run.
  double zeros_at_once(int factor, const SpatialSizes& size) const;
  double bytes_at_once(int factor, const SpatialTransfer& transfer, const SpatialSizes& size) const;
  double accesses_each(int64_t pitch) const;
  double accesses_of_gathered(int factor, const SpatialSizes& size) const;
  double accesses_per_piece(int factor, const SpatialSizes& size) const;
  /// Between the elements of a run that is gathered.
  int64_t gather_pitch(int factor, const SpatialSizes& size) const;
  /// What one access brings at most.
  int64_t line_bytes() const { return int64_t{design.banks} * design.bank_bytes; }
  int64_t bursts(const SpatialTransfer& transfer) const {
    return transfer.rows * ceil_div(transfer.run, design.burst_bytes);
  }
  int64_t fetch_cycles() const { return ceil_div(kInstructionBytes, design.bus_bytes); }
  static constexpr int64_t kInstructionBytes = 128, kBiasBytes = 4, kLongestLoop = 65535;
};

/// Tiles of a loop: all of `tile`, the last one what is left.
struct SpatialTrips {
  int64_t count = 1, tile = 1, last = 1;
  SpatialTrips(int64_t extent, int64_t size)
      : count(ceil_div(extent, size)), tile(size), last(extent - (count - 1) * size) {}
  /// Sum of ceil(size / lanes) over the tiles.
  int64_t blocks(int64_t lanes) const {
    return lanes == 1 ? (count - 1) * tile + last
                      : (count - 1) * ceil_div(tile, lanes) + ceil_div(last, lanes);
  }
  /// The same, each times the lanes that a row of the tile has.
  int64_t lane_bytes(int64_t lanes) const {
    return (count - 1) * ceil_div(tile, lanes) * std::min(lanes, tile) +
           ceil_div(last, lanes) * std::min(lanes, last);
  }
};

}  // namespace tilewright::cost
