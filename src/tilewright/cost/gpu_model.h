// How long a sum of products takes on a GPU whose blocks of threads keep tiles of the result in
// registers and stage both factors in shared memory: closed forms, nothing runs.
//
// A unit (multiprocessor) holds as many blocks at a time as its threads, registers and shared
// memory allow. All blocks run in waves of that many per unit; the last wave has fewer. A wave
// takes the longest of what its blocks ask of each resource, and a tenth of the rest, which does
// not hide completely:
//   compute   multiply-adds of whole tiles, loads from shared memory and copies into it, as issued
//   shared    what threads read and write in shared memory, in rows of one warp
//   l2        what blocks fetch, in sectors, and write
//   dram      what the L2 cache has to fetch for a wave; everything once where it all fits
//   latency   rounds of one block in a row: fetch, wait, multiply, wait; `depth` rounds overlap
// To these comes the start of each kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/cost/contraction.h"
#include "tilewright/hw/gpu_target.h"

namespace tilewright::cost {

/// Bytes that the L2 cache hands out at least.
inline constexpr int64_t kSectorBytes = 32;

/// How one axis is shared out. Of the result: `threads` threads with `each` elements, of which
/// `vector` lie side by side and are loaded together. Of the terms: `each` iterations per round.
struct GpuShare {
  int64_t threads = 1, each = 1, vector = 1;
};

/// A tile, as the model sees it.
struct GpuBlocking {
  std::vector<GpuShare> axes;  ///< of the contraction, in order
  int64_t depth = 1;           ///< rounds in flight; 1: none overlap
  int64_t splits = 1;          ///< blocks that share the terms of a result
};

/// units: ns, all blocks together.
struct GpuPrediction {
  double compute = 0, shared = 0, l2 = 0, dram = 0, latency = 0, launch = 0;
  double total = 0;          ///< waves x the longest of a wave + launch
  int64_t blocks = 0;        ///< of the grid
  int64_t threads = 0;       ///< of a block
  int64_t resident = 0;      ///< blocks that a unit holds at a time
  int64_t registers = 0;     ///< of a thread, estimated
  int64_t shared_bytes = 0;  ///< of a block
  double waves = 0;          ///< blocks / (units * resident)

  /// The resource with the longest time: `compute`, `shared`, `l2`, `dram` or `latency`.
  std::string bound() const;
};

/// Predicts tiles of one contraction on one target; keeps what they have in common.
class GpuModel {
 public:
  /// `contraction`: its axes, outermost first; its operands, two factors and the result; its dtype.
  /// Blocks are numbered with the last axis of the result moving first.
  GpuModel(const Contraction& contraction, const hw::GpuTarget& target);

  /// Absent where a block asks for more threads, registers or shared memory than there are.
  /// requires: as many axes as the contraction has.
  std::optional<GpuPrediction> predict(const GpuBlocking& blocking) const;

 private:
  struct Tile;
  struct Factor {
    std::vector<Index> indices;
    std::vector<bool> moves;  ///< by axis
    int64_t bytes = 4, elements = 1;
  };

  int64_t box(const Factor& factor, const std::vector<int64_t>& sizes) const;
  int64_t fetched_bytes(const Factor& factor, const std::vector<int64_t>& sizes) const;
  int64_t copied_at_once(const Factor& factor, const std::vector<int64_t>& sizes,
                         const GpuBlocking& blocking) const;
  double slots_of_step(const Tile& tile, double loads) const;
  bool lay_out(const GpuBlocking& blocking, Tile& tile, GpuPrediction& out) const;
  void cost_round(const GpuBlocking& blocking, Tile& tile) const;
  double shared_reads(const GpuBlocking& blocking, const Factor& factor, int64_t warps) const;
  double dram_bytes(const Tile& tile, const GpuPrediction& out, const GpuBlocking& blocking) const;

  std::vector<ContractionAxis> axes_;
  std::vector<Factor> operands_;
  DType dtype_;
  hw::GpuTarget target_;
};

}  // namespace tilewright::cost
