#include "tilewright/codesign/evaluation.h"

#include <cmath>

#include "tilewright/accel/spatial/needs.h"

namespace tilewright::codesign {
namespace {

constexpr double kInt32Bytes = 4;

/// Every access of one run times what it costs. A LOAD writes the scratchpad, a step reads it;
/// sums are read and written by each step, and read once more by the STORE.
void add_energy(const spatial::Design& design, const cost::SpatialLayer& layer,
                const Energies& energies, LayerResult& result) {
  const cost::SpatialCost& cost = result.cost;
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  double spad = number(cost.spad_reads[0] + cost.spad_reads[1]), dram = 0;
  for (int t = 0; t < cost::kSpatialTensors; ++t) {
    const cost::SpatialTraffic& traffic = cost.dram[t];
    dram += number(traffic.bytes);
    if (t != cost::kSpatialResult) spad += number(traffic.bytes + traffic.padding);
  }
  const cost::SpatialTensor& out = layer.tensors[cost::kSpatialResult];
  const double stored = number(cost.dram[cost::kSpatialResult].bytes / out.element_bytes);
  const double local = kInt32Bytes * (2 * number(spatial::sum_parts(design) * cost.steps) + stored);
  result.dram_pj = dram * energies.dram_byte;
  result.chip_pj = energies.mac * number(cost.steps * design.units()) + energies.spad_byte * spad +
                   energies.local_byte * local + energies.dma_byte * dram +
                   energies.command * number(cost.instructions);
}

double in_unit(const DesignResult& result, const Limit& limit) {
  return limit.unit == LimitUnit::Seconds ? result.seconds : value(result, limit.objective);
}

}  // namespace

double value(const DesignResult& result, Objective objective) {
  constexpr double kPico = 1e-12;
  switch (objective) {
    case Objective::Latency:
      return result.cycles();
    case Objective::Power:
      return result.consumption.power_mw;
    case Objective::PeakPower:
      return result.peak_power_mw;
    case Objective::Area:
      return result.area.total();
    case Objective::Energy:
      return result.consumption.energy_pj * kPico;
    case Objective::Edp:
      return result.consumption.energy_pj * kPico * result.seconds;
  }
  return 0;
}

DesignEvaluator::DesignEvaluator(Workload workload, Technology technology, LayerMapper mapper)
    : workload_(std::move(workload)),
      technology_(std::move(technology)),
      mapper_(std::move(mapper)) {}

LayerResult DesignEvaluator::layer(const spatial::Design& design, const WorkloadLayer& layer) {
  LayerResult result;
  result.bound = cost::lower_bound(design, layer.layer);
  const double host = static_cast<double>(layer.layer.macs()) / design.host.macs_per_cycle;
  const std::optional<cost::SpatialBest> mapped =
      mapper_ ? mapper_(design, layer.layer) : cost::best_mapping(design, layer.layer);
  result.on_host = !mapped || host < mapped->cost.cycles;
  if (mapped) result.mapping = mapped->mapping, result.cost = mapped->cost;
  result.cycles = result.on_host ? host : result.cost.cycles;
  if (!result.on_host) add_energy(design, layer.layer, energies(design, technology_), result);
  return result;
}

DesignResult DesignEvaluator::evaluate(const spatial::Design& design) {
  spatial::Design nameless = design;
  nameless.name.clear();
  const std::string key = to_toml(nameless);
  DesignResult result;
  double chip = 0, dram = 0;
  for (size_t i = 0; i < workload_.layers.size(); ++i) {
    auto [found, is_new] = mapped_.try_emplace({key, i});
    if (is_new) found->second = layer(design, workload_.layers[i]);
    const LayerResult& one = found->second;
    const double runs = static_cast<double>(workload_.layers[i].runs);
    (one.on_host ? result.host_cycles : result.accelerator_cycles) += runs * one.cycles;
    chip += runs * one.chip_pj;
    dram += runs * one.dram_pj;
    result.layers.push_back(one);
  }
  for (const HostNode& node : workload_.host)
    result.host_cycles += static_cast<double>(node.bytes) / design.host.bytes_per_cycle +
                          static_cast<double>(node.macs) / design.host.macs_per_cycle;
  result.seconds = result.cycles() / (design.clock_mhz * 1e6);
  result.consumption = consumption(energies(design, technology_), chip, dram, result.seconds);
  result.peak_power_mw = peak_power(design, technology_);
  result.area = area(design, technology_);
  return result;
}

search::MultiOutcome outcome(const DesignResult& result, const std::vector<Objective>& objectives,
                             const std::vector<Limit>& limits) {
  search::MultiOutcome outcome;
  for (const Objective objective : objectives)
    outcome.objectives.push_back(value(result, objective));
  for (const Limit& limit : limits)
    outcome.violations.push_back(std::log10(in_unit(result, limit) / limit.value));
  return outcome;
}

}  // namespace tilewright::codesign
