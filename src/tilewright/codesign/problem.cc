#include "tilewright/codesign/problem.h"

#include <algorithm>
#include <cmath>

namespace tilewright::codesign {
namespace {

/// Whether `optimistic` is exact in this objective.
bool known(Objective objective, Accounting accounting) {
  switch (objective) {
    case Objective::Area:
    case Objective::PeakPower:
      return true;
    case Objective::Power:
      return accounting != Accounting::Events;
    default:
      return false;
  }
}

/// Whether `optimistic` is never above what an evaluation gives. Power of counted events is energy
/// over time, and a layer that the host runs has no energy: there it is an opinion.
bool bounded(Objective objective, Accounting accounting) {
  if (objective == Objective::Latency || known(objective, accounting)) return true;
  return accounting == Accounting::PowerTimesTime;
}

search::PriorValue prior_value(const DesignResult& result, const Goals& goals) {
  const search::MultiOutcome outcome = codesign::outcome(result, goals.objectives, goals.limits);
  search::PriorValue prior;
  for (const double objective : outcome.objectives)
    prior.log_objectives.push_back(std::log10(objective));
  prior.violations = outcome.violations;
  return prior;
}

double least_cycles(const spatial::Design& design, const cost::SpatialLayer& layer) {
  return cost::lower_bound(design, layer);
}
/// A layer that VTA cannot run is the host's.
double least_cycles(const vta::Config& config, const cost::SpatialLayer& layer) {
  const Result<rules::VtaLayer> tiled = vta_layer(layer, config);
  return tiled ? static_cast<double>(rules::layer_bound(*tiled, config)) : HUGE_VAL;
}

int64_t tensor_bytes(const cost::SpatialTensor& tensor) {
  int64_t bytes = tensor.element_bytes;
  for (const cost::SpatialDim& dim : tensor.dims) bytes *= dim.extent;
  return bytes;
}

}  // namespace

DesignResult optimistic(const DesignEvaluator& evaluator, const Hardware& hardware) {
  const Energies energies = codesign::energies(hardware, evaluator.technology());
  std::vector<LayerResult> layers;
  for (const WorkloadLayer& layer : evaluator.workload().layers) {
    const double macs = static_cast<double>(layer.layer.macs());
    const double host = macs / host_of(hardware).macs_per_cycle;
    LayerResult least;
    least.bound =
        std::visit([&](const auto& design) { return least_cycles(design, layer.layer); }, hardware);
    least.on_host = host < least.bound;
    least.cycles = std::min(host, least.bound);
    if (!least.on_host) {
      for (const cost::SpatialTensor& tensor : layer.layer.tensors)
        least.dram_bytes += static_cast<double>(tensor_bytes(tensor));
      least.chip_pj =
          macs * energies.mac + least.dram_bytes * (energies.dma_byte + energies.spad_byte);
      least.dram_pj = least.dram_bytes * energies.dram_byte;
    }
    layers.push_back(std::move(least));
  }
  return sum_up(evaluator.workload(), evaluator.technology(), hardware, std::move(layers));
}

search::MultiProblem make_problem(const DesignSpace& space, const DesignEvaluator& evaluator,
                                  const Goals& goals) {
  search::MultiProblem problem{space.points(), 2, 0, {}, {}, {}, {}};
  problem.objectives = goals.objectives.size();
  problem.limits = goals.limits.size();
  problem.legal = [&space](const search::Point& point) { return space.legal(point); };
  const auto at = [&space, &evaluator, goals](const search::Point& point) {
    return prior_value(optimistic(evaluator, space.hardware(point)), goals);
  };
  problem.prior.at = at;
  const auto accounting = codesign::energies(spatial::Design{}, evaluator.technology()).accounting;
  for (const Objective objective : goals.objectives)
    problem.prior.known_objectives.push_back(known(objective, accounting));
  for (const Limit& limit : goals.limits)
    problem.prior.known_violations.push_back(known(limit.objective, accounting));
  bool all_bounded = true;
  for (const Objective objective : goals.objectives)
    all_bounded = all_bounded && bounded(objective, accounting);
  for (const Limit& limit : goals.limits)
    all_bounded = all_bounded && bounded(limit.objective, accounting);
  if (all_bounded) problem.bounds = at;
  return problem;
}

}  // namespace tilewright::codesign
