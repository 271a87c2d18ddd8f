// A layer with made-up operands, and its results by the definition: for tests.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tilewright/codegen/spatial/layer_code.h"

namespace tilewright::spatial {

inline int packed_of(const cost::SpatialLayer& layer) {
  return layer.tensors[0].packed ? 0 : layer.tensors[1].packed ? 1 : -1;
}

class PlainLayer {
 public:
  PlainLayer(const cost::SpatialLayer& layer, uint64_t seed) : layer_(layer) {
    std::mt19937_64 random(seed);
    for (int tensor : {0, 1})
      for (int64_t i = elements(tensor); i-- > 0;)
        data_[tensor].push_back(static_cast<int8_t>(random()));
    for (const cost::SpatialLoop& loop : layer.loops)
      for (int64_t i = 0; i < loop.extent; ++i)
        bias_.push_back(static_cast<int32_t>(random() % 40000) - 20000);
  }

  int64_t elements(int tensor) const {
    int64_t count = 1;
    for (const cost::SpatialDim& dim : layer_.tensors[tensor].dims) count *= dim.extent;
    return count;
  }
  /// Bytes of the result.
  int64_t results() const {
    return elements(cost::kSpatialResult) * layer_.tensors[cost::kSpatialResult].element_bytes;
  }

  /// DRAM with the operands; their addresses go to `operands`.
  std::string image(const Design& design, const cost::SpatialMapping& mapping,
                    LayerOperands& operands) const {
    std::string dram(64, '\x55');
    for (int tensor : {0, 1}) {
      operands.address[tensor] = dram.size();
      const std::vector<int8_t>& data = data_[tensor];
      if (tensor == packed_of(layer_))
        dram += pack(design, layer_, mapping, data,
                     operands.biased ? std::span(bias_) : std::span<const int32_t>());
      else
        dram.append(reinterpret_cast<const char*>(data.data()), data.size());
      dram.resize((dram.size() + 63) / 64 * 64, '\x55');
    }
    operands.address[cost::kSpatialResult] = dram.size();
    dram.resize(dram.size() + static_cast<size_t>(results()), '\x55');
    return dram;
  }

  std::string expected(const LayerOperands& operands) const {
    std::vector<int64_t> sums(static_cast<size_t>(elements(cost::kSpatialResult)));
    std::vector<int64_t> bias(sums.size());
    std::array<int64_t, cost::kSpatialLoops> at{};
    const int packed = packed_of(layer_);
    int bias_loop = -1;
    for (int loop = 0; packed >= 0 && loop < int(layer_.loops.size()); ++loop)
      if (layer_.moves(packed, loop) && layer_.moves(cost::kSpatialResult, loop)) bias_loop = loop;
    const auto descend = [&](const auto& self, size_t loop) -> void {
      if (loop < layer_.loops.size()) {
        for (at[loop] = 0; at[loop] < layer_.loops[loop].extent; ++at[loop]) self(self, loop + 1);
        return;
      }
      const int64_t a = index(0, at), b = index(1, at), to = index(2, at);
      if (a >= 0 && b >= 0)
        sums[size_t(to)] += int64_t{data_[0][size_t(a)]} * int64_t{data_[1][size_t(b)]};
      if (bias_loop >= 0) bias[size_t(to)] = bias_[size_t(at[size_t(bias_loop)])];
    };
    descend(descend, 0);
    std::string bytes;
    for (size_t i = 0; i < sums.size(); ++i) {
      int64_t sum = sums[i] + (operands.biased ? bias[i] : 0);
      if (operands.wide) {
        for (int b = 0; b < 4; ++b) bytes += static_cast<char>(sum >> 8 * b);
        continue;
      }
      if (operands.shift) sum = (sum + (int64_t{1} << (operands.shift - 1))) >> operands.shift;
      bytes += static_cast<char>(std::clamp<int64_t>(sum, operands.low, operands.high));
    }
    return bytes;
  }

 private:
  /// -1: outside.
  int64_t index(int tensor, const std::array<int64_t, cost::kSpatialLoops>& at) const {
    int64_t place = 0;
    for (const cost::SpatialDim& dim : layer_.tensors[tensor].dims) {
      int64_t p = -dim.begin;
      for (const cost::SpatialTerm& term : dim.terms) p += term.stride * at[size_t(term.loop)];
      if (p < 0 || p >= dim.extent) return -1;
      place = place * dim.extent + p;
    }
    return place;
  }

  const cost::SpatialLayer& layer_;
  std::array<std::vector<int8_t>, 2> data_;
  std::vector<int32_t> bias_;
};

}  // namespace tilewright::spatial
