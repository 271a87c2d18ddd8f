// What a launch on a spatial accelerator did, as reports show it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tilewright/compile/spatial/device.h"

namespace tilewright::compile {
namespace {

/// From the first instruction of a layer to its last, and cycles in which each queue worked.
struct LayerTime {
  uint64_t begin = 0, end = 0;
  std::array<uint64_t, spatial::kQueues> busy{};
};

LayerTime time_of(const accel::Span& span, const std::vector<spatial::Insn>& insns,
                  const std::vector<spatial::InsnTime>& times) {
  LayerTime layer{~uint64_t{0}, 0, {}};
  for (const spatial::InsnTime& time : times) {
    if (time.insn < span.begin || time.insn >= span.end) continue;
    layer.begin = std::min(layer.begin, time.begin);
    layer.end = std::max(layer.end, time.end);
    layer.busy[static_cast<size_t>(insns[time.insn].queue())] += time.end - time.begin;
  }
  return layer;
}

std::vector<std::string> row_of(const std::string& name, const LayerTime& time) {
  std::vector<std::string> row = {name, std::to_string(time.begin), std::to_string(time.end)};
  for (const uint64_t busy : time.busy) row.push_back(std::to_string(busy));
  return row;
}

}  // namespace

std::vector<Count> SpatialLaunchRecord::counters() const {
  std::vector<Count> counts;
  for_each_field(report_.counters, [&](std::string_view name, uint64_t value) {
    counts.push_back({std::string(name), value});
  });
  return counts;
}

std::vector<LaunchLayer> SpatialLaunchRecord::layers() const {
  std::vector<LaunchLayer> layers;
  if (report_.times.empty()) return layers;
  const spatial::Run& run = program_->runs.back();
  for (const accel::Span& span : run.spans) {
    const LayerTime time = time_of(span, run.insns, report_.times);
    LaunchLayer& layer = layers.emplace_back();
    layer.name = span.name;
    layer.cycles = {{"begin", time.begin}, {"end", time.end}};
    for (int q = 0; q < spatial::kQueues; ++q)
      layer.cycles.push_back({std::string(spatial::name(static_cast<spatial::Queue>(q))),
                              time.busy[static_cast<size_t>(q)]});
    layer.row = row_of(span.name, time);
  }
  return layers;
}

std::vector<std::string> SpatialLaunchRecord::headings() const {
  return {"layer", "begin", "end", "load", "compute", "store"};
}

std::vector<std::string> SpatialLaunchRecord::row(const std::string& name) const {
  const spatial::Counters& c = report_.counters;
  return row_of(name, {0, report_.cycles, {c.load_busy, c.compute_busy, c.store_busy}});
}

}  // namespace tilewright::compile
