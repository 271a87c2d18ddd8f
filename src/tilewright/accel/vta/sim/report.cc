// From the times of single instructions to a report: cycles of the run and of each layer, what the
// modules waited for (tokens, memory), bytes moved, and a lower bound from the work alone.
#include <algorithm>

#include "tilewright/accel/vta/sim/stream.h"
#include "tilewright/accel/vta/sim/timing.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

/// Bytes over the read port, instructions included.
uint64_t bytes_read(const Counters& c) {
  return c.inp_load_bytes + c.wgt_load_bytes + c.acc_load_bytes + c.uop_load_bytes +
         c.insns * kInsnBytes;
}

/// The counter of what an instruction of the module at `place` waited for.
uint64_t* waiting(ModuleUse& use, const InsnTime& time, int place) {
  switch (time.stall) {
    case Stall::Token:
      return time.token_from < place ? &use.token_prev : &use.token_next;
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

/// A part of what instructions do.
struct PartialWork {
  double gemm = 0, resets = 0, alu = 0, store = 0, bytes = 0;

  void add(const Work& work, double part) {
    const auto share = [part](uint64_t all) { return part * static_cast<double>(all); };
    gemm += share(work.counters.gemm_steps);
    resets += share(work.gemm) - share(work.counters.gemm_steps);
    alu += share(work.alu), store += share(work.store);
    bytes += share(bytes_read(work.counters));
  }
  /// requires: cycles that are enough for it.
  Bound bound(const Config& config, uint64_t cycles) const {
    const double products = gemm + resets;
    const double compute = config.extensions.pipeline4 ? std::max(products, alu) : products + alu;
    const auto whole = [&](double x) { return std::min(cycles, static_cast<uint64_t>(x + 0.5)); };
    return {whole(compute), whole(bytes / config.timing.bus_bytes), whole(store)};
  }
};

/// Sets `from` of each layer, and what is done from there to its end.
void fill_windows(const Config& config, const Run& run, const LaunchReport& report,
                  std::vector<LayerUse>& layers) {
  uint64_t done = 0;
  for (LayerUse& layer : layers) {
    layer.from = std::min(done, layer.end);
    done = std::max(done, layer.end);
  }
  std::vector<PartialWork> windows(layers.size());
  for (const InsnTime& time : report.times) {
    Work work;
    work.add(config, run.insns[time.insn]);
    const double length = static_cast<double>(std::max<uint64_t>(1, time.end - time.begin));
    // Windows follow each other in time: the first one that ends after the instruction begins.
    auto l = static_cast<size_t>(std::partition_point(layers.begin(), layers.end(),
                                                      [&](const LayerUse& layer) {
                                                        return std::max(layer.from, layer.end) <=
                                                               time.begin;
                                                      }) -
                                 layers.begin());
    for (; l < layers.size() && layers[l].from < time.end; ++l) {
      const uint64_t begin = std::max(layers[l].from, time.begin);
      const uint64_t end = std::min(layers[l].end, time.end);
      if (begin < end) windows[l].add(work, static_cast<double>(end - begin) / length);
    }
  }
  for (size_t l = 0; l < layers.size(); ++l) {
    layers[l].within = windows[l].bound(config, layers[l].end - layers[l].from);
    layers[l].gemm_within = windows[l].gemm;
  }
}

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
    const auto place = static_cast<int>(at - chain.begin());
    ModuleUse& use = result.modules[static_cast<size_t>(place)];
    if (uint64_t* const cycles = waiting(use, time, place)) *cycles += time.begin - time.ready;
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
  fill_windows(config, run, report, layers);
  return layers;
}

double gemm_utilisation(const LayerUse& layer) {
  const uint64_t cycles = layer.end - layer.begin;
  return cycles == 0 ? 0.0
                     : static_cast<double>(layer.counters.gemm_steps) / static_cast<double>(cycles);
}

}  // namespace tilewright::vta
