// What a VTA launch did, as reports show it.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/compile/vta/device.h"

namespace tilewright::compile {
namespace {

double ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

uint64_t read_bytes(const vta::Counters& c) {
  return c.inp_load_bytes + c.wgt_load_bytes + c.acc_load_bytes + c.uop_load_bytes;
}

std::vector<Count> counts_of(const vta::Counters& counters) {
  std::vector<Count> counts;
  for_each_field(counters, [&](std::string_view name, uint64_t value) {
    counts.push_back({std::string(name), value});
  });
  return counts;
}

/// Of all runs together, as the counters are.
vta::Bound bound_of(const vta::Program& program) {
  vta::Bound sum;
  for (const vta::Run& run : program.runs) {
    const vta::Bound bound = vta::bound(program.config, run.insns);
    sum.compute += bound.compute;
    sum.read += bound.read;
    sum.store += bound.store;
  }
  return sum;
}

/// `gemm`: GEMM steps in these cycles.
std::vector<std::string> row_of(const std::string& name, uint64_t cycles, double gemm,
                                const vta::Counters& c, const vta::Bound& bound,
                                const vta::Config& config) {
  const double macs = static_cast<double>(config.batch()) * config.block_in() * config.block_out() *
                      static_cast<double>(c.gemm_steps);
  return {name,
          std::to_string(cycles),
          fmt::format("{:.1f} %", 100 * gemm / static_cast<double>(std::max<uint64_t>(cycles, 1))),
          std::to_string(bound.cycles()),
          fmt::format("{:.3f}", ratio(cycles, bound.cycles())),
          bound.compute >= std::max(bound.read, bound.store) ? "compute"
          : bound.read >= bound.store                        ? "read"
                                                             : "store",
          fmt::format("{:.1f}", macs / static_cast<double>(std::max<uint64_t>(
                                           read_bytes(c) + c.out_store_bytes, 1)))};
}

}  // namespace

VtaLaunchRecord::VtaLaunchRecord(std::string device, std::shared_ptr<const vta::Program> program,
                                 vta::LaunchReport report)
    : device_(std::move(device)), program_(std::move(program)), report_(std::move(report)) {}

std::vector<Count> VtaLaunchRecord::counters() const { return counts_of(report_.counters); }

std::vector<LaunchLayer> VtaLaunchRecord::layers() const {
  std::vector<LaunchLayer> layers;
  if (report_.times.empty()) return layers;
  const vta::Config& config = program_->config;
  for (const vta::LayerUse& layer : vta::per_layer(config, program_->runs.back(), report_))
    layers.push_back({layer.name,
                      {{"begin", layer.begin},
                       {"end", layer.end},
                       {"from", layer.from},
                       {"bound_cycles", layer.bound.cycles()},
                       {"bound_within", layer.within.cycles()}},
                      counts_of(layer.counters),
                      row_of(layer.name, layer.end - layer.from, layer.gemm_within, layer.counters,
                             layer.within, config)});
  return layers;
}

std::vector<std::string> VtaLaunchRecord::headings() const {
  return {"layer", "cycles", "GEMM use", "bound", "of bound", "bound by", "MAC/byte"};
}

std::vector<std::string> VtaLaunchRecord::row(const std::string& name) const {
  const vta::Counters& all = report_.counters;
  return row_of(name, report_.cycles, static_cast<double>(all.gemm_steps), all, bound_of(*program_),
                program_->config);
}

std::optional<accel::RunTrace> VtaLaunchRecord::trace() const {
  if (report_.times.empty()) return std::nullopt;
  return vta::run_trace(program_->config, program_->runs.back(), report_);
}

}  // namespace tilewright::compile
