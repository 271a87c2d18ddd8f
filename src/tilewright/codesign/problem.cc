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

int64_t result_bytes(const cost::SpatialTensor& tensor) {
  int64_t bytes = tensor.element_bytes;
  for (const cost::SpatialDim& dim : tensor.dims) bytes *= dim.extent;
  return bytes;
}

}  // namespace

DesignResult optimistic(const DesignEvaluator& evaluator, const spatial::Design& design) {
  const Energies energies = codesign::energies(design, evaluator.technology());
  DesignResult result;
  double chip = 0, dram = 0;
  for (const WorkloadLayer& layer : evaluator.workload().layers) {
    const double runs = static_cast<double>(layer.runs);
    const double macs = static_cast<double>(layer.layer.macs());
    const double host = macs / design.host.macs_per_cycle;
    const double bound = cost::lower_bound(design, layer.layer);
    (host < bound ? result.host_cycles : result.accelerator_cycles) += runs * std::min(host, bound);
    if (host < bound) continue;
    double bytes = 0;
    for (const cost::SpatialTensor& tensor : layer.layer.tensors)
      bytes += static_cast<double>(result_bytes(tensor));
    chip += runs * (macs * energies.mac + bytes * (energies.dma_byte + energies.spad_byte));
    dram += runs * bytes * energies.dram_byte;
  }
  for (const HostNode& node : evaluator.workload().host)
    result.host_cycles += static_cast<double>(node.bytes) / design.host.bytes_per_cycle +
                          static_cast<double>(node.macs) / design.host.macs_per_cycle;
  result.seconds = result.cycles() / (design.clock_mhz * 1e6);
  result.consumption = consumption(energies, chip, dram, result.seconds);
  result.peak_power_mw = peak_power(design, evaluator.technology());
  result.area = area(design, evaluator.technology());
  return result;
}

search::MultiProblem make_problem(const DesignSpace& space, const DesignEvaluator& evaluator,
                                  const Goals& goals) {
  search::MultiProblem problem{space.points(), 2, 0, {}, {}, {}, {}};
  problem.objectives = goals.objectives.size();
  problem.limits = goals.limits.size();
  problem.legal = [&space](const search::Point& point) { return space.legal(point); };
  const auto at = [&space, &evaluator, goals](const search::Point& point) {
    return prior_value(optimistic(evaluator, space.design(point)), goals);
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
