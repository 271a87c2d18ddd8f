// Mapping a layer onto VTA: which tiles, in which order, kept how long, and what that costs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/accel/vta/config.h"
#include "tilewright/base/result.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Axes of a layer in tiles: images, output channel blocks, rows and columns; then those of the
/// reduction: input channel blocks (of one group), rows and columns of the window.
enum class TileAxis { N, O, H, W, C, R, S };
inline constexpr size_t kTileAxes = 7;
constexpr bool reduces(TileAxis axis) { return axis >= TileAxis::C; }
template <class T>
struct PerAxis : std::array<T, kTileAxes> {
  T& operator[](TileAxis a) { return this->at(static_cast<size_t>(a)); }
  const T& operator[](TileAxis a) const { return this->at(static_cast<size_t>(a)); }
  using std::array<T, kTileAxes>::operator[];
};

/// What a mapping needs to know of a layer: a convolution (or dense layer) with an element-wise
/// end, or, without `conv`, a pooling by maximum.
struct VtaLayer {
  std::string name;
  bool conv = true;
  PerAxis<int64_t> extent{{1, 1, 1, 1, 1, 1, 1}};  ///< of the output and the reduction
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t in_h = 1, in_w = 1;         ///< rows and columns of the input in DRAM
  int64_t pad_top = 0, pad_left = 0;  ///< zeros before them
  bool padded = false;                ///< by a block of its own
  int64_t out_per_group = 0;          ///< output blocks that read the same input blocks; 0: all
  int64_t vectors = 0;  ///< i32 operands that do not vary along rows and columns (bias, multiplier)
  bool vector_by_image = false, vector_by_block = true;  ///< along which axes they vary
  int64_t row_step = 1;              ///< rows of DRAM from one row of the input to the next
  int64_t residuals = 0;             ///< int8 operands of the output's shape
  int64_t residual_steps = 0;        ///< GEMM steps per element that add them
  int64_t imm_ops = 0, reg_ops = 0;  ///< ALU steps per output element
  friend bool operator==(const VtaLayer&, const VtaLayer&) = default;
};

/// The layer that `func` is, by the first rule that takes it. `choice`, if given, receives which,
/// and who declined before. errors: Unsupported (what in `func` is not of the forms that VTA can
/// run).
Result<VtaLayer> vta_layer(const Func& func, RuleChoice* choice = nullptr);
/// All rules, in their order.
std::vector<RuleInfo> vta_rules();

/// How a layer runs. Loops over tiles stand in `order`, outermost first; an axis of one tile has no
/// loop. The result stays on chip from the outermost loop of the reduction on: loops before it make
/// tiles of the result, loops after it run over all of their axis in the accumulators. Groups of
/// taps divide the window; that of a pooling is one.
struct VtaMapping {
  PerAxis<int64_t> tile{{1, 1, 1, 1, 1, 1, 1}};
  std::vector<TileAxis> order;
  /// Loops (of `order`, from the outside) around the copy of the input and of the weights; what
  /// they read in the loops inside is loaded at once.
  int input_depth = 0, weight_depth = 0;
  /// The result is finished and stored in pieces of channel blocks, or rows if it has one block:
  /// the sizes of the last ones; what is left is the first. Small last pieces end a layer early.
  std::vector<int64_t> tail;
  int copies = 2;         ///< of each on-chip buffer inside a loop, but
  int result_copies = 2;  ///< of the result's; 1: the next tile waits for its stores piece by piece
  friend bool operator==(const VtaMapping&, const VtaMapping&) = default;
};

/// One line: `n1 o4 h4 w56 c1 r3 s3, order h c, input@2 weights@2, tail 2 1, copies 2 2`.
std::string to_string(const VtaMapping& mapping);
/// The pieces of a result of `extent` blocks (or rows), in order.
std::vector<int64_t> piece_sizes(int64_t extent, const std::vector<int64_t>& tail);
/// Number of tiles along `axis`.
int64_t tiles(const VtaLayer& layer, const VtaMapping& mapping, TileAxis axis);
/// Loops of `mapping.order` outside of the first one of the reduction: the result's buffer stands
/// in the last of them.
int result_depth(const VtaLayer& layer, const VtaMapping& mapping);

/// What a mapping needs on chip; units: elements, with all copies.
struct VtaNeed {
  int64_t inp = 0, wgt = 0, acc = 0, uop = 0;
  bool fits(const vta::Config& config) const;
};
VtaNeed need(const VtaLayer& layer, const VtaMapping& mapping, const vta::Config& config);

/// The predicted time of a mapping. `cycles`: from launch to done. The others are how long each
/// module is busy, and bytes moved.
struct VtaCost {
  int64_t cycles = 0;
  int64_t load = 0, compute = 0, store = 0;
  int64_t read_bytes = 0, insns = 0;
  int64_t steps = 0;  ///< GEMM instructions looked at
};
/// The pipeline of load, compute and store, tile by tile, with the durations of docs/vta-timing.md.
/// requires: a mapping with tiles inside the layer.
VtaCost predict(const VtaLayer& layer, const VtaMapping& mapping, const vta::Config& config);

/// The least that any mapping of `layer` can take: steps of compute at their initiation intervals,
/// bytes read once over the bus, store cycles. units: cycles.
int64_t layer_bound(const VtaLayer& layer, const vta::Config& config);

struct MappingOptions {
  int max_copies = 2;  ///< 1: without latency hiding
  /// Effort, in steps of the model (about 50 ns each): when it is used up, the best so far stands.
  int64_t budget = 12'000'000;
  bool prune = true;  ///< false: predicts every mapping; the result is the same
};
/// The mapping of the least predicted cycles among all tile sizes that fit, all loop orders, all
/// places of the copies, all piece sizes; of equals the one that reads less (within the budget).
/// Windows stay whole unless nothing fits then: rows of taps are tried next, and parts of one.
/// errors: Capacity if nothing fits, with the smallest need.
Result<VtaMapping> best_mapping(const VtaLayer& layer, const vta::Config& config,
                                const MappingOptions& options = {});

}  // namespace tilewright::rules
