#include "tilewright/codegen/spatial/layer_code.h"

#include <algorithm>
#include <numeric>

#include "tilewright/accel/spatial/merge.h"
#include "tilewright/base/check.h"
#include "tilewright/codegen/spatial/tiles.h"

namespace tilewright::spatial {
namespace {

using cost::kSpatialResult;
using cost::SpatialBox;
using cost::SpatialLayer;
using cost::SpatialMapping;
using cost::SpatialReach;
using cost::SpatialSizes;
using cost::SpatialTensor;
using cost::SpatialUnit;

class LayerCoder {
 public:
  LayerCoder(const Design& design, const SpatialLayer& layer, const SpatialMapping& mapping,
             const LayerOperands& operands)
      : unit_(design, layer, mapping.choice),
        mapping_(mapping),
        operands_(operands),
        tensor_{mapping.choice.first, mapping.choice.second()},
        packed_(layer.packed_tensor()),
        bias_loop_(cost_bias_loop()) {
    int64_t address = 0;
    for (int f : {0, 1}) {
      base_[f] = address;
      bytes_[f] = unit_.buffer_bytes(tensor_[f], mapping.tile);
      address += mapping.copies[tensor_[f]] * bytes_[f];
    }
    if (packed_ >= 0) tiles_ = packed_tiles(unit_, mapping, operands.biased);
  }

  std::vector<Insn> run() {
    // What changes more seldom is loaded first: it need not wait for the tile before.
    const int first = depth_of(0) < depth_of(1) ? 0 : 1;
    for_each_tile(unit_.layer, mapping_, [&](const Tile& tile) {
      for (int f : {first, 1 - first}) {
        const SpatialSizes key = tile_key(unit_, tensor_[f], tile.box);
        if (uses_[f] == 0 || key != loaded_[f]) load(f, tile.box);
        loaded_[f] = key;
      }
      compute(tile);
      if (tile.ends) store(tile.box);
    });
    return std::move(insns_);
  }

 private:
  int cost_bias_loop() const { return operands_.biased ? unit_.layer.bias_loop() : -1; }

  int depth_of(int factor) const {
    int depth = -1;
    for (int place = 0; place < unit_.loops; ++place) {
      const int loop = mapping_.order[place];
      if (unit_.in(unit_.moves[tensor_[factor]], loop) &&
          mapping_.tile[loop] < unit_.layer.loops[loop].extent)
        depth = place;
    }
    return depth;
  }

  uint64_t dram_of(int tensor, const std::vector<SpatialReach>& reach) const {
    uint64_t address = operands_.address[tensor];
    const std::vector<int64_t> pitch = cost::pitches(unit_.layer.tensors[tensor]);
    for (size_t i = 0; i < reach.size(); ++i) {
      if (reach[i].span.there == 0) return operands_.address[tensor];
      address += static_cast<uint64_t>(reach[i].first * pitch[i]);
    }
    return address;
  }

  void load(int f, const SpatialBox& box) {
    const int64_t copy = uses_[f]++ % mapping_.copies[tensor_[f]];
    buffer_[f] = base_[f] + copy * bytes_[f];
    Load load = unit_.load(f, box);
    load.spad = static_cast<uint32_t>(buffer_[f]);
    if (tensor_[f] == packed_)
      place_packed(box, load);
    else
      load.dram = dram_of(tensor_[f], unit_.reach(tensor_[f], box));
    insns_.push_back({0, 0, load});
  }

  /// Where a tile of the packed factor lies, and the biases in front of it.
  void place_packed(const SpatialBox& box, Load& load) {
    const PackedTile& tile = tiles_.at(tile_key(unit_, packed_, box));
    load.dram = operands_.address[packed_] + tile.offset + static_cast<uint64_t>(4 * tile.biases);
    if (tile.biases == 0) return;
    // Two tiles' biases have room beside each other: those of the last one are still read.
    if (bias_end_ + tile.biases > kBiasWords) bias_end_ = 0;
    bias_ = bias_end_;
    bias_end_ += tile.biases;
    load.bias_words = static_cast<uint16_t>(tile.biases);
    load.bias = static_cast<uint16_t>(bias_);
  }

  /// Sums from one block of each loop of the result to the next.
  SpatialSizes sum_steps(const SpatialSizes& size) const {
    SpatialSizes steps{};
    int64_t sums = 1;
    for (int loop = unit_.loops; loop-- > 0;)
      if (unit_.in(unit_.moves[kSpatialResult], loop)) {
        steps[loop] = sums;
        sums *= cost::ceil_div(size[loop], unit_.lanes[loop]);
      }
    return steps;
  }

  /// Loops that choose the block of weights, then results, then those summed over; taps of a block
  /// are last.
  std::vector<int> compute_order() const {
    std::vector<int> order(static_cast<size_t>(unit_.loops));
    std::iota(order.begin(), order.end(), 0);
    const auto rank = [&](int loop) {
      if (unit_.in(unit_.tap_loops, loop)) return 3;
      if (unit_.stationary) return unit_.in(unit_.block_loops, loop) ? 0 : 1;
      return unit_.layer.loops[loop].reduces ? 2 : 1;
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rank(a) < rank(b); });
    return order;
  }

  /// Loops that choose the tap in a block: the last ones of a COMPUTE.
  size_t taps_of(const SpatialSizes& size) const {
    size_t taps = 0;
    for (int loop = 0; loop < unit_.loops; ++loop)
      taps += unit_.in(unit_.tap_loops, loop) && size[loop] > 1;
    return taps;
  }

  void compute(const Tile& tile) {
    const SpatialSizes& size = tile.box.size;
    const SpatialSizes steps[] = {unit_.strides(0, size), unit_.strides(1, size)};
    const SpatialSizes sums = sum_steps(size);
    Compute out;
    std::array<int8_t, cost::kSpatialLoops> at{};
    at.fill(-1);
    size_t used = 0;
    for (const int loop : compute_order()) {
      const int64_t count = cost::ceil_div(size[loop], unit_.lanes[loop]);
      if (count == 1) continue;
      const bool tap = unit_.in(unit_.tap_loops, loop);
      if (tap && out.tap_loops == 0) used = kLoops - taps_of(size);
      TW_CHECK(used < kLoops, "a tile with more loops than a COMPUTE has is no mapping");
      at[static_cast<size_t>(loop)] = static_cast<int8_t>(used);
      ComputeLoop& into = out.loops[used++];
      into.count = static_cast<uint16_t>(count);
      into.reduces = unit_.layer.loops[loop].reduces;
      for (int f : {0, 1}) into.spad_step[f] = static_cast<uint32_t>(steps[f][loop]);
      into.sum_step = static_cast<uint32_t>(sums[loop]);
      if (unit_.stationary && unit_.in(unit_.block_loops, loop)) ++out.block_loops;
      if (tap) ++out.tap_loops;
    }
    const auto lanes = [&](int loop) {
      if (loop < 0 || unit_.lanes[loop] == 1) return Lanes{};
      return Lanes{at[static_cast<size_t>(loop)], static_cast<uint16_t>(size[loop])};
    };
    out.i = lanes(unit_.choice.i);
    out.j = lanes(unit_.choice.j);
    out.k = lanes(unit_.choice.k);
    if (unit_.stationary) {
      const int row = unit_.design.unit == Unit::Conv2d ? unit_.choice.j : unit_.choice.k;
      out.row_step = static_cast<uint32_t>(steps[1][row] / unit_.lanes[row]);
    }
    out.begins = tile.begins;
    for (int f : {0, 1}) out.spad[f] = static_cast<uint32_t>(buffer_[f]);
    if (tile.begins)
      sum_ = results_++ % mapping_.copies[kSpatialResult] * unit_.sums_per_part(mapping_.tile);
    out.sum = static_cast<uint32_t>(sum_);
    insns_.push_back({0, 0, out});
  }

  /// From a lane of this loop to the next, in parts of the private memory.
  uint16_t part_step(int loop) const {
    const bool rows = loop == unit_.choice.i && unit_.design.unit == Unit::Gemm;
    return static_cast<uint16_t>(rows ? unit_.design.cols : 1);
  }

  void store(const SpatialBox& box) {
    const SpatialTensor& result = unit_.layer.tensors[kSpatialResult];
    const std::vector<SpatialReach> reach = unit_.reach(kSpatialResult, box);
    const std::vector<int64_t> pitch = cost::pitches(result);
    const SpatialSizes sums = sum_steps(box.size);
    const size_t skip = kAxes - result.dims.size();
    Store out;
    out.dram = dram_of(kSpatialResult, reach);
    for (size_t i = 0; i < reach.size(); ++i) {
      StoreAxis& axis = out.axes[skip + i];
      axis.count = static_cast<uint32_t>(reach[i].span.all);
      axis.dram_step = static_cast<int32_t>(pitch[i]);
      if (result.dims[i].terms.empty()) continue;
      const int loop = result.dims[i].terms[0].loop;
      axis.sum_step = static_cast<uint32_t>(sums[loop]);
      if (unit_.lanes[loop] > 1) {
        axis.lanes = static_cast<uint16_t>(unit_.lanes[loop]);
        axis.part_step = part_step(loop);
      }
      if (loop == bias_loop_) out.bias_axis = static_cast<int8_t>(skip + i);
    }
    out.run_axes = static_cast<uint8_t>(cost::run_dims(result, reach));
    out.sum = static_cast<uint32_t>(sum_);
    out.wide = operands_.wide;
    if (out.bias_axis >= 0) out.bias = static_cast<uint16_t>(bias_);
    out.shift = static_cast<uint8_t>(operands_.shift);
    out.low = static_cast<int8_t>(operands_.low);
    out.high = static_cast<int8_t>(operands_.high);
    insns_.push_back({0, 0, merged(out)});
  }

  const SpatialUnit unit_;
  const SpatialMapping& mapping_;
  const LayerOperands& operands_;
  const std::array<int, 2> tensor_;
  const int packed_, bias_loop_;
  PackedTiles tiles_;
  std::array<int64_t, 2> base_{}, bytes_{}, buffer_{}, uses_{};
  std::array<SpatialSizes, 2> loaded_{};
  int64_t results_ = 0, sum_ = 0;
  int64_t bias_ = 0, bias_end_ = 0;
  std::vector<Insn> insns_;
};

}  // namespace

std::vector<Insn> layer_code(const Design& design, const SpatialLayer& layer,
                             const SpatialMapping& mapping, const LayerOperands& operands) {
  return LayerCoder(design, layer, mapping, operands).run();
}

}  // namespace tilewright::spatial
