#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tilewright/accel/vta/sim/stream.h"
#include "tilewright/accel/vta/sim/timing.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

constexpr uint64_t kInsnBytes = 16;

/// Bytes over the read port, instructions included.
uint64_t bytes_read(const Counters& c) {
  return c.inp_load_bytes + c.wgt_load_bytes + c.acc_load_bytes + c.uop_load_bytes +
         c.insns * kInsnBytes;
}

uint64_t* waiting(ModuleUse& use, Stall stall) {
  switch (stall) {
    case Stall::TokenFromPrev:
      return &use.token_prev;
    case Stall::TokenFromNext:
      return &use.token_next;
    case Stall::Memory:
      return &use.memory;
    case Stall::None:
    case Stall::Queue:
    case Stall::Idle:
      return nullptr;  // what is left over is idle
  }
  return nullptr;
}

/// What there is to do, whatever the order.
struct Work {
  uint64_t gemm = 0, alu = 0, store = 0;
  Counters counters;

  void add(const Config& config, const Insn& insn) {
    count(config, insn, counters);
    const uint64_t steps = step_cycles(config, insn);
    if (std::holds_alternative<Gemm>(insn.op)) gemm += steps;
    if (std::holds_alternative<Alu>(insn.op)) alu += steps;
    if (const auto* t = std::get_if<Transfer>(&insn.op); t && t->store && t->moves())
      store += store_cycles(config, *t);
  }

  Bound bound(const Config& config) const {
    const uint64_t bus = static_cast<uint64_t>(config.timing.bus_bytes);
    const uint64_t compute = config.extensions.pipeline4 ? std::max(gemm, alu) : gemm + alu;
    return {compute, (bytes_read(counters) + bus - 1) / bus, store};
  }
};

}  // namespace

Utilisation utilisation(const Config& config, const std::vector<Insn>& insns,
                        const LaunchReport& report) {
  TW_CHECK(report.times.size() == insns.size(), "{} times for {} instructions", report.times.size(),
           insns.size());
  Utilisation result;
  result.cycles = report.cycles;
  const std::vector<Module> chain = modules(config);
  for (const Module module : chain) result.modules.push_back({module, 0, 0, 0, 0, 0});
  for (const InsnTime& time : report.times) {
    const Insn& insn = insns[time.insn];
    const auto at = std::find(chain.begin(), chain.end(), module_of(config, insn));
    ModuleUse& use = result.modules[static_cast<size_t>(at - chain.begin())];
    if (uint64_t* const cycles = waiting(use, time.stall)) *cycles += time.begin - time.ready;
    const uint64_t took = time.end - time.begin;
    const uint64_t alone = std::min(took, alone_cycles(config, insn));
    use.busy += alone;
    use.memory += took - alone;
  }
  for (ModuleUse& use : result.modules) {
    const uint64_t known = use.busy + use.token_prev + use.token_next + use.memory;
    use.idle = result.cycles - std::min(known, result.cycles);
  }
  Counters counters;
  for (const Insn& insn : insns) count(config, insn, counters);
  if (report.cycles > 0) {
    const double cycles = static_cast<double>(report.cycles);
    result.gemm = static_cast<double>(counters.gemm_steps) / cycles;
    result.bus = static_cast<double>(bytes_read(counters)) / cycles / config.timing.bus_bytes;
  }
  return result;
}

Bound bound(const Config& config, const std::vector<Insn>& insns) {
  Work work;
  for (const Insn& insn : insns) work.add(config, insn);
  return work.bound(config);
}

std::vector<LayerUse> per_layer(const Config& config, const Run& run, const LaunchReport& report) {
  TW_CHECK(report.times.size() == run.insns.size(), "{} times for {} instructions",
           report.times.size(), run.insns.size());
  std::vector<LayerUse> layers;
  for (const Span& span : run.spans) {
    LayerUse layer;
    layer.name = span.name;
    layer.begin = span.begin < span.end ? UINT64_MAX : 0;
    Work work;
    for (size_t i = span.begin; i < span.end; ++i) {
      layer.begin = std::min(layer.begin, report.times[i].begin);
      layer.end = std::max(layer.end, report.times[i].end);
      work.add(config, run.insns[i]);
    }
    layer.counters = work.counters;
    layer.bound = work.bound(config);
    layers.push_back(std::move(layer));
  }
  return layers;
}

double gemm_utilisation(const LayerUse& layer) {
  const uint64_t cycles = layer.end - layer.begin;
  return cycles == 0 ? 0.0
                     : static_cast<double>(layer.counters.gemm_steps) / static_cast<double>(cycles);
}

double operations_per_byte(const Config& config, const LayerUse& layer) {
  const Counters& c = layer.counters;
  const double macs =
      static_cast<double>(c.gemm_steps) * config.batch() * config.block_in() * config.block_out();
  const double alu =
      static_cast<double>(c.alu_imm_steps + c.alu_reg_steps) * config.batch() * config.block_out();
  const uint64_t bytes = bytes_read(c) + c.out_store_bytes;
  return bytes == 0 ? 0.0 : (2 * macs + alu) / static_cast<double>(bytes);
}

std::string layer_table(const Config& config, const std::vector<LayerUse>& layers) {
  size_t width = 5;
  for (const LayerUse& layer : layers) width = std::max(width, layer.name.size());
  std::string text =
      fmt::format("{:<{}} {:>10} {:>10} {:>7} {:>7} {:>9} {:>9} {:>9} {:>8}\n", "layer", width,
                  "cycles", "bound", "ratio", "gemm %", "compute", "read", "store", "ops/byte");
  for (const LayerUse& layer : layers) {
    const uint64_t cycles = layer.end - layer.begin, least = layer.bound.cycles();
    text += fmt::format("{:<{}} {:>10} {:>10} {:>7.3f} {:>7.1f} {:>9} {:>9} {:>9} {:>8.1f}\n",
                        layer.name, width, cycles, least,
                        least == 0 ? 0.0 : static_cast<double>(cycles) / static_cast<double>(least),
                        100 * gemm_utilisation(layer), layer.bound.compute, layer.bound.read,
                        layer.bound.store, operations_per_byte(config, layer));
  }
  return text;
}

std::string layer_json(const Config& config, const std::vector<LayerUse>& layers) {
  nlohmann::json list = nlohmann::json::array();
  for (const LayerUse& layer : layers) {
    const Counters& c = layer.counters;
    list.push_back({{"name", layer.name},
                    {"begin", layer.begin},
                    {"end", layer.end},
                    {"cycles", layer.end - layer.begin},
                    {"bound", layer.bound.cycles()},
                    {"bound_compute", layer.bound.compute},
                    {"bound_read", layer.bound.read},
                    {"bound_store", layer.bound.store},
                    {"gemm_utilisation", gemm_utilisation(layer)},
                    {"ops_per_byte", operations_per_byte(config, layer)},
                    {"gemm_steps", c.gemm_steps},
                    {"reset_steps", c.reset_steps},
                    {"alu_steps", c.alu_imm_steps + c.alu_reg_steps},
                    {"read_bytes", bytes_read(c)},
                    {"store_bytes", c.out_store_bytes},
                    {"insns", c.insns}});
  }
  return list.dump();
}

}  // namespace tilewright::vta
