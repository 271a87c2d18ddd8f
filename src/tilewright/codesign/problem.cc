#include "tilewright/codesign/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/codesign/opinion.h"
#include "tilewright/codesign/unmatched.h"

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

/// Cycles of a layer that the hardware cannot run: less than these is what the host takes.
constexpr double kNever = std::numeric_limits<double>::infinity();

double least_cycles(const spatial::Design& design, const cost::SpatialLayer& layer) {
  return cost::lower_bound(design, layer);
}
double least_cycles(const vta::Config& config, const cost::SpatialLayer& layer) {
  const Result<rules::VtaLayer> tiled = vta_layer(layer, config);
  return tiled ? static_cast<double>(rules::layer_bound(*tiled, config)) : kNever;
}

int64_t tensor_bytes(const cost::SpatialTensor& tensor) {
  int64_t bytes = tensor.element_bytes;
  for (const cost::SpatialDim& dim : tensor.dims) bytes *= dim.extent;
  return bytes;
}

/// The least that a run on the accelerator takes.
LayerResult least_of(const Hardware& hardware, const cost::SpatialLayer& layer,
                     const Energies& energies) {
  LayerResult least;
  least.cycles = least.bound =
      std::visit([&](const auto& design) { return least_cycles(design, layer); }, hardware);
  for (const cost::SpatialTensor& tensor : layer.tensors)
    least.dram_bytes += static_cast<double>(tensor_bytes(tensor));
  least.energy.array = static_cast<double>(layer.macs()) * energies.mac;
  least.energy.scratchpad = least.dram_bytes * energies.spad_byte;
  least.energy.dma = least.dram_bytes * energies.dma_byte;
  least.energy.dram = least.dram_bytes * energies.dram_byte;
  return least;
}

/// What a run on the accelerator probably takes.
LayerResult probable(const spatial::Design& design, const cost::SpatialLayer& layer,
                     const Energies& energies) {
  constexpr double kPartBytes = 4;
  LayerResult result;
  result.cycles = kNever;
  const std::optional<LayerOpinion> known = opinion(design, layer);
  if (!known) return result;
  const LayerOpinion& o = *known;
  const double sums = 2 * static_cast<double>(spatial::sum_parts(design));
  result.cycles = o.cycles;
  result.dram_bytes = o.load_bytes + o.store_bytes;
  result.energy.array = o.steps * static_cast<double>(design.units()) * energies.mac;
  result.energy.scratchpad = (o.spad_reads + o.load_bytes) * energies.spad_byte;
  result.energy.local = kPartBytes * (sums * o.steps + o.store_bytes) * energies.local_byte;
  result.energy.dma = result.dram_bytes * energies.dma_byte;
  result.energy.dram = result.dram_bytes * energies.dram_byte;
  return result;
}

/// `of` says what each layer takes on the accelerator; the host takes what it does faster.
template <class Of>
DesignResult estimate(const DesignEvaluator& evaluator, const Hardware& hardware, const Of& of) {
  const Energies energies = codesign::energies(hardware, evaluator.technology());
  std::vector<LayerResult> layers;
  for (const WorkloadLayer& layer : evaluator.workload().layers) {
    const double host = static_cast<double>(layer.layer.macs()) / host_of(hardware).macs_per_cycle;
    LayerResult one = of(layer.layer, energies);
    if (host < one.cycles) {
      one = LayerResult();
      one.on_host = true;
      one.cycles = host;
    }
    layers.push_back(std::move(one));
  }
  return sum_up(evaluator.workload(), evaluator.technology(), hardware, std::move(layers));
}

}  // namespace

DesignResult optimistic(const DesignEvaluator& evaluator, const Hardware& hardware) {
  return estimate(evaluator, hardware,
                  [&](const cost::SpatialLayer& layer, const Energies& energies) {
                    return least_of(hardware, layer, energies);
                  });
}

DesignResult expected(const DesignEvaluator& evaluator, const Hardware& hardware) {
  const auto* design = std::get_if<spatial::Design>(&hardware);
  if (design == nullptr) return optimistic(evaluator, hardware);
  return estimate(evaluator, hardware,
                  [&](const cost::SpatialLayer& layer, const Energies& energies) {
                    return probable(*design, layer, energies);
                  });
}

std::vector<size_t> memory_decisions(const DesignSpace& space) {
  std::vector<size_t> decisions;
  const SpaceFile& file = space.file();
  for (size_t p = 0; p < file.parameters.size(); ++p)
    if (file.generator->keys()[static_cast<size_t>(file.parameters[p].key)].memory)
      decisions.push_back(p);
  return decisions;
}

search::MultiProblem make_problem(const DesignSpace& space, const DesignEvaluator& evaluator,
                                  const Goals& goals) {
  search::MultiProblem problem{space.points()};
  problem.sharing = memory_decisions(space);
  problem.objectives = goals.objectives.size();
  problem.limits = goals.limits.size();
  problem.legal = useful_points(space, evaluator.workload());
  const auto at = [&space, &evaluator, goals](const search::Point& point) {
    return prior_value(optimistic(evaluator, space.hardware(point)), goals);
  };
  problem.prior.at = [&space, &evaluator, goals](const search::Point& point) {
    return prior_value(expected(evaluator, space.hardware(point)), goals);
  };
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
