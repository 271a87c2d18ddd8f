// What LOADs of a tile do (docs/spatial.md, 3): the box that one moves.
#include "tilewright/accel/spatial/merge.h"
#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {

using spatial::kAxes;

std::vector<SpatialReach> SpatialUnit::reach(int tensor, const SpatialBox& box) const {
  std::vector<SpatialReach> reach;
  for (size_t i = 0; i < layer.tensors[tensor].dims.size(); ++i) {
    const SpatialDim& dim = layer.tensors[tensor].dims[i];
    SpatialReach r;
    r.span = span(tensor, i, box);
    r.step = tensor == kSpatialResult ? 1 : skips(tensor, i, box.size);
    int64_t low = -dim.begin;
    for (const SpatialTerm& term : dim.terms) low += term.stride * box.start[term.loop];
    if (low < 0) r.before = std::min(ceil_div(-low, r.step), r.span.all - r.span.there);
    r.first = low + r.before * r.step;
    reach.push_back(r);
  }
  return reach;
}

std::vector<int64_t> pitches(const SpatialTensor& tensor) {
  std::vector<int64_t> pitch(tensor.dims.size());
  int64_t bytes = tensor.element_bytes;
  for (size_t i = tensor.dims.size(); i-- > 0; bytes *= tensor.dims[i].extent) pitch[i] = bytes;
  return pitch;
}

size_t run_dims(const SpatialTensor& tensor, const std::vector<SpatialReach>& reach) {
  size_t count = 0;
  for (size_t i = reach.size(); i-- > 0;) {
    const SpatialSpan& span = reach[i].span;
    if (!span.dense && span.there != 1) break;
    ++count;
    if (span.there != tensor.dims[i].extent) break;
  }
  return std::max<size_t>(count, 1);
}

int64_t SpatialUnit::packed_bytes(const SpatialSizes& size) const {
  int64_t bytes = 1;
  const int tensor = layer.packed_tensor();
  for (size_t dim = 0; dim < layer.tensors[tensor].dims.size(); ++dim)
    bytes *= elements(tensor, dim, size);
  return bytes;
}

spatial::Load SpatialUnit::load(int factor, const SpatialBox& box) const {
  const int number = factor ? choice.second() : choice.first;
  const SpatialTensor& tensor = layer.tensors[number];
  spatial::Load load;
  if (tensor.packed) {
    const auto bytes = static_cast<uint32_t>(packed_bytes(box.size));
    for (spatial::LoadAxis& axis : load.axes) axis.dram_step = static_cast<int32_t>(bytes);
    load.axes[kAxes - 1] = {bytes, 0, 0, 1, 1};
    load.run_axes = kAxes;
    return merged(load);
  }
  const std::vector<SpatialReach> reach = this->reach(number, box);
  const std::vector<int64_t> pitch = pitches(tensor);
  const SpatialPlaces at = places(factor, box.size);
  const size_t skip = kAxes - tensor.dims.size();
  for (size_t i = 0; i < reach.size(); ++i) {
    const SpatialReach& r = reach[i];
    spatial::LoadAxis& axis = load.axes[skip + i];
    axis.count = static_cast<uint32_t>(r.span.all);
    axis.before = static_cast<uint16_t>(r.before);
    axis.after = static_cast<uint16_t>(r.span.all - r.span.there - r.before);
    axis.dram_step = static_cast<int32_t>((r.span.there > 1 ? r.step : 1) * pitch[i]);
    axis.spad_step = static_cast<uint32_t>(at.pitch[i]);
  }
  const int64_t width = std::min(lanes[lane_loop[factor]], box.size[lane_loop[factor]]);
  const auto lane = skip + static_cast<size_t>(lane_dim[factor]);
  if (at.block && load.axes[lane].count > width) {
    load.lane_axis = static_cast<int8_t>(lane);
    load.lanes = static_cast<uint16_t>(width);
    load.lane_pitch = static_cast<uint32_t>(at.block);
  } else if (at.phases > 1) {
    load.lane_axis = static_cast<int8_t>(lane);
    load.lanes = static_cast<uint16_t>(at.phases);
    load.lane_pitch = 1;
    load.axes[lane].spad_step = static_cast<uint32_t>(at.phase);
  }
  load.run_axes = static_cast<uint8_t>(run_dims(tensor, reach));
  return merged(load);
}

}  // namespace tilewright::cost
