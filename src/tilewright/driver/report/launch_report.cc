#include "tilewright/driver/report/launch_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/file.h"
#include "tilewright/driver/cli.h"

namespace tilewright::driver {
namespace {

double ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

uint64_t read_bytes(const vta::Counters& c) {
  return c.inp_load_bytes + c.wgt_load_bytes + c.acc_load_bytes + c.uop_load_bytes;
}

nlohmann::ordered_json counters_json(const vta::Counters& counters) {
  nlohmann::ordered_json json;
  for_each_field(counters,
                 [&](std::string_view name, uint64_t value) { json[std::string(name)] = value; });
  return json;
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

nlohmann::ordered_json launches_json(const compile::LaunchLog& log) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const compile::LaunchLog::Entry& entry : log.entries) {
    const vta::Run& run = entry.program->runs.back();
    nlohmann::ordered_json launch = {{"name", entry.name},
                                     {"cycles", entry.report.cycles},
                                     {"counters", counters_json(entry.report.counters)}};
    if (!entry.report.times.empty())
      for (const vta::LayerUse& layer : vta::per_layer(entry.program->config, run, entry.report))
        launch["layers"].push_back({{"name", layer.name},
                                    {"begin", layer.begin},
                                    {"end", layer.end},
                                    {"from", layer.from},
                                    {"bound_cycles", layer.bound.cycles()},
                                    {"bound_within", layer.within.cycles()},
                                    {"counters", counters_json(layer.counters)}});
    json.push_back(std::move(launch));
  }
  return json;
}

std::string launches_table(const compile::LaunchLog& log) {
  const bool timed = std::any_of(log.entries.begin(), log.entries.end(),
                                 [](const auto& entry) { return entry.report.cycles > 0; });
  if (!timed) return "";
  std::vector<std::vector<std::string>> rows = {
      {"layer", "cycles", "GEMM use", "bound", "of bound", "bound by", "MAC/byte"}};
  for (const compile::LaunchLog::Entry& entry : log.entries) {
    const vta::Config& config = entry.program->config;
    const vta::Run& run = entry.program->runs.back();
    if (!entry.report.times.empty())
      for (const vta::LayerUse& layer : vta::per_layer(config, run, entry.report))
        rows.push_back(row_of(layer.name, layer.end - layer.from, layer.gemm_within, layer.counters,
                              layer.within, config));
    const vta::Counters& all = entry.report.counters;
    rows.push_back(row_of(entry.name, entry.report.cycles, static_cast<double>(all.gemm_steps), all,
                          bound_of(*entry.program), config));
  }
  return table(rows);
}

Status write_trace(const std::string& path, const compile::LaunchLog& log) {
  for (const compile::LaunchLog::Entry& entry : log.entries) {
    if (entry.report.times.empty())
      return fail(ErrorKind::Usage, "this device keeps no time, so there is no trace", {},
                  "--device vta:tsim");
    const std::string file = log.entries.size() == 1 ? path : path + "." + entry.name;
    TW_TRY_STATUS(write_file(file, vta::perfetto_trace(entry.program->config,
                                                       entry.program->runs.back(), entry.report)));
  }
  return {};
}

}  // namespace tilewright::driver
