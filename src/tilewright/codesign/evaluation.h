// One design on one workload: the best mapping of every layer, then latency, energy, power, area.
//
// Example: `DesignEvaluator(workload, asic45).evaluate(design)` maps the 21 distinct layers of
// ResNet-50, each with as many runs as it has, and adds what the host does.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/codesign/area.h"
#include "tilewright/codesign/limits.h"
#include "tilewright/codesign/vta_layer.h"
#include "tilewright/codesign/workload.h"
#include "tilewright/cost/spatial/mapper.h"
#include "tilewright/search/multi/pareto.h"

namespace tilewright::codesign {

/// To be raised whenever the same design costs something else: studies keep it.
inline constexpr int kModelVersion = 9;

/// One layer on a design. Cycles, bytes and energies are of one run.
struct LayerResult {
  bool on_host = false;  ///< faster there, or no mapping fits
  cost::SpatialMapping mapping;
  cost::SpatialCost cost;
  std::optional<VtaRun> vta;  ///< on VTA; then `mapping` and `cost` mean nothing
  cost::SpatialBinds binds = cost::SpatialBinds::Steps;
  double dram_bytes = 0;
  double cycles = 0;
  double bound = 0;  ///< no mapping takes fewer (cost::lower_bound); none fits: what the host takes
  EnergyLevels energy;
};

struct DesignResult {
  std::vector<LayerResult> layers;  ///< in the order of the workload's
  double accelerator_cycles = 0, host_cycles = 0;
  double seconds = 0;  ///< of both, one after the other
  Consumption consumption;
  double peak_power_mw = 0;
  Area area;

  double cycles() const { return accelerator_cycles + host_cycles; }
};

/// One line: tiles, order, copies.
std::string mapping_text(const WorkloadLayer& layer, const LayerResult& result);
/// One run of a layer under a mapping that somebody gives, a line as mapping_text has it; what the
/// host would take does not matter. errors: Parse (no such line; the place is a column), Usage
/// (loops, tiles or a choice that the layer has not), Capacity (which memory, which tensor, KiB),
/// Unsupported (a layer that the hardware cannot play).
Result<LayerResult> judge(const Hardware& hardware, const WorkloadLayer& layer,
                          const Technology& technology, std::string_view mapping);
/// What layers cost together, with the nodes of the host, one after the other.
DesignResult sum_up(const Workload& workload, const Technology& technology,
                    const Hardware& hardware, std::vector<LayerResult> layers);

/// In the unit of limits: cycles, mW, um2 or a share, J, Js.
double value(const DesignResult& result, Objective objective);

/// Finds a mapping of a layer; nothing: none fits. May be called by several threads.
using LayerMapper = std::function<std::optional<cost::SpatialBest>(const spatial::Design&,
                                                                   const cost::SpatialLayer&)>;

/// Keeps the best mappings of layers of `spatial`: a mapping that is the best on a design is so on
/// any with smaller memories that it fits, and designs with arrays alike give each other bounds. Of
/// VTA, and of what a `LayerMapper` finds, only an equal design has the results again. Results do
/// not depend on what was evaluated before. Threads may share one.
class DesignEvaluator {
 public:
  /// Without a `mapper`: cost::best_mapping.
  DesignEvaluator(Workload workload, Technology technology, LayerMapper mapper = {});

  const Workload& workload() const { return workload_; }
  const Technology& technology() const { return technology_; }
  /// requires: a legal design.
  DesignResult evaluate(const Hardware& hardware);
  /// Layers that were mapped, and those whose mapping was known.
  int64_t mapped() const { return mapped_; }
  int64_t reused() const { return reused_; }

 private:
  struct Solved {
    int spad_kb = 0, local_kb = 0;
    std::optional<cost::SpatialBest> best;
  };
  /// What was found for one layer.
  struct Known {
    std::map<std::string, std::vector<Solved>> by_design;  ///< without its memories
    /// By the array as the layer sees it: some of the best mappings, the latest last.
    std::map<std::string, std::vector<cost::SpatialMapping>> by_array;
    std::map<std::string, LayerResult> by_file;  ///< of designs that share nothing else
  };

  LayerResult layer(const spatial::Design& design, size_t place) const;  ///< by the given mapper
  LayerResult layer(const vta::Config& config, size_t place) const;
  /// `file`: of the hardware, without its name.
  LayerResult once(const Hardware& hardware, const std::string& file, size_t place);
  /// `others`: all of the design but its array and its memories.
  std::optional<cost::SpatialBest> best(const spatial::Design& design, const std::string& others,
                                        size_t place);

  Workload workload_;
  Technology technology_;
  LayerMapper mapper_;
  std::mutex mutex_;  ///< of all below
  std::vector<Known> known_;
  int64_t mapped_ = 0, reused_ = 0;
};

/// Objectives, and limits as log10(value / limit).
search::MultiOutcome outcome(const DesignResult& result, const std::vector<Objective>& objectives,
                             const std::vector<Limit>& limits);

}  // namespace tilewright::codesign
