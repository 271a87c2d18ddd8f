// Designs, layers and mappings drawn by seed.
#pragma once

#include <random>

#include "tilewright/cost/spatial/model.h"

namespace tilewright::cost {

class CaseDraw {
 public:
  explicit CaseDraw(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t count) { return int64_t(random_() % uint64_t(count)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  int64_t one_of(std::initializer_list<int64_t> values) {
    return values.begin()[below(values.size())];
  }

  /// A legal design; `units`: how many kinds of units to draw from, gemm first.
  spatial::Design design(int units = 4);
  SpatialLayer layer(int64_t largest, const spatial::Design& design);
  /// One that fits; nothing if a few hundred draws found none.
  bool mapping(const spatial::Design& design, const SpatialLayer& layer, SpatialMapping& out);

 private:
  std::mt19937_64 random_;
};

inline spatial::Design CaseDraw::design(int units) {
  using spatial::Dataflow, spatial::Design, spatial::Links, spatial::Unit;
  Design d;
  static constexpr Unit kUnits[] = {Unit::Gemm, Unit::Gemv, Unit::Dot, Unit::Conv2d};
  d.unit = kUnits[below(units)];
  d.dataflow = below(2) ? Dataflow::WeightStationary : Dataflow::OutputStationary;
  d.links = Links::Full;
  if (d.unit == Unit::Gemm) d.links = static_cast<Links>(below(3));
  if (d.unit == Unit::Gemv || d.unit == Unit::Conv2d)
    d.links = below(3) ? Links::Full : Links::None;
  const bool square = below(2);
  d.rows = int(square ? one_of({4, 8, 16, 32}) : between(2, 24));
  d.cols = square ? d.rows : int(between(2, 24));
  d.spad_kb = int(one_of({16, 64, 128, 256, 512}));
  d.local_kb = int(one_of({16, 64, 128}));
  d.banks = int(between(1, 8));
  d.bank_bytes = int(one_of({8, 16, 16, 32}));
  d.bus_bytes = int(one_of({8, 8, 16, 32}));
  d.burst_bytes = int(one_of({64, 128, 512, 2048}));
  // What a design may not be is drawn again.
  return spatial::problems(d).empty() ? d : design(units);
}

inline SpatialLayer CaseDraw::layer(int64_t largest, const spatial::Design& design) {
  if (design.unit != spatial::Unit::Conv2d && below(4) == 0) {
    const int64_t rows = between(1, 8 * largest), columns = between(1, 8 * largest);
    const int64_t depth = between(1, 8 * largest);
    return matmul(rows, columns, depth, below(2));
  }
  SpatialConv conv;
  conv.inputs = between(1, 4 * largest);
  conv.outputs = between(1, 4 * largest);
  conv.height = between(3, 2 * largest);
  conv.width = between(3, 2 * largest);
  conv.kernel = one_of({1, 1, 3, 3, 2});
  conv.stride = one_of({1, 1, 2});
  conv.dilation = conv.kernel > 1 && conv.height > 6 && conv.width > 6 ? one_of({1, 1, 2}) : 1;
  conv.pad = conv.kernel == 1 ? 0 : below(2);
  if (below(2)) conv.input = ImageLayout::ChannelsLast;
  if (below(2)) conv.output = ImageLayout::ChannelsLast;
  return conv2d(conv);
}

inline bool CaseDraw::mapping(const spatial::Design& design, const SpatialLayer& layer,
                              SpatialMapping& out) {
  const auto all = choices(design, layer);
  if (all.empty()) return false;
  for (int attempt = 0; attempt < 300; ++attempt) {
    out = {};
    out.choice = all[below(int64_t(all.size()))];
    SpatialEvaluator evaluator(design, layer, out.choice);
    const int count = int(layer.loops.size());
    std::vector<int> spatial, reduce;
    for (int loop = 0; loop < count; ++loop) {
      const int64_t extent = layer.loops[loop].extent, lanes = evaluator.unit().lanes[loop];
      const int64_t trips = one_of({1, 1, 2, 3, 4, 7});
      int64_t size = ceil_div(extent, trips);
      if (below(2)) size = ceil_div(size, lanes) * lanes;
      out.tile[loop] = std::min(size, extent);
      auto& group = layer.loops[loop].reduces ? reduce : spatial;
      group.insert(group.begin() + below(int64_t(group.size()) + 1), loop);
    }
    std::copy(spatial.begin(), spatial.end(), out.order.begin());
    std::copy(reduce.begin(), reduce.end(), out.order.begin() + std::ptrdiff_t(spatial.size()));
    for (int& copies : out.copies) copies = below(4) ? 2 : 1;
    if (evaluator.fits(out)) return true;
  }
  return false;
}

}  // namespace tilewright::cost
