// What a launch on the DPU did, as reports show it.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/dpu/sim/report.h"
#include "tilewright/accel/dpu/sim/timeline.h"
#include "tilewright/compile/dpu/device.h"

namespace tilewright::compile {
namespace {

/// `cycles`: from the layer's first instruction to its last.
std::vector<std::string> dpu_row(const dpu::LayerUse& use, uint64_t cycles) {
  const auto busy = [&](dpu::Unit unit) {
    return std::to_string(use.busy[static_cast<size_t>(unit)]);
  };
  const auto share =
      100 * static_cast<double>(use.bound()) / static_cast<double>(std::max<uint64_t>(cycles, 1));
  return {use.name,
          std::to_string(use.begin),
          std::to_string(use.end),
          busy(dpu::Unit::Conv),
          busy(dpu::Unit::Misc),
          busy(dpu::Unit::Load),
          busy(dpu::Unit::Save),
          use.bound_by(),
          fmt::format("{:.0f} %", share)};
}

}  // namespace

DpuLaunchRecord::DpuLaunchRecord(std::string device, std::shared_ptr<const dpu::Program> program,
                                 dpu::LaunchReport report)
    : device_(std::move(device)), program_(std::move(program)), report_(std::move(report)) {}

std::vector<Count> DpuLaunchRecord::counters() const {
  std::vector<Count> counts;
  for_each_field(report_.counters, [&](std::string_view name, uint64_t value) {
    counts.push_back({std::string(name), value});
  });
  return counts;
}

std::vector<LaunchLayer> DpuLaunchRecord::layers() const {
  std::vector<LaunchLayer> layers;
  if (report_.times.empty()) return layers;
  for (const dpu::LayerUse& use :
       dpu::per_layer(program_->config, program_->runs.back(), report_)) {
    const auto busy = [&](dpu::Unit unit) { return use.busy[static_cast<size_t>(unit)]; };
    layers.push_back({use.name,
                      {{"begin", use.begin},
                       {"end", use.end},
                       {"conv", busy(dpu::Unit::Conv)},
                       {"misc", busy(dpu::Unit::Misc)},
                       {"load", busy(dpu::Unit::Load)},
                       {"save", busy(dpu::Unit::Save)},
                       {"bound", use.bound()}},
                      {{"macs", use.macs}},
                      dpu_row(use, use.end - use.begin)});
  }
  return layers;
}

std::vector<std::string> DpuLaunchRecord::headings() const {
  return {"layer", "begin", "end", "conv", "misc", "load", "save", "bound by", "of its time"};
}

std::vector<std::string> DpuLaunchRecord::row(const std::string& name) const {
  if (report_.times.empty()) return {name, "0", std::to_string(report_.cycles)};
  dpu::LayerUse use = dpu::whole(program_->config, program_->runs.back(), report_);
  use.name = name;
  return dpu_row(use, report_.cycles);
}

std::optional<accel::RunTrace> DpuLaunchRecord::trace() const {
  if (report_.times.empty()) return std::nullopt;
  return dpu::run_trace(program_->runs.back(), program_->config, report_);
}

std::optional<std::string> DpuLaunchRecord::timeline() const {
  if (report_.times.empty()) return std::nullopt;
  return dpu::timeline_svg(program_->runs.back(), program_->config, report_);
}

}  // namespace tilewright::compile
