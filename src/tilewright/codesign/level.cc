#include "tilewright/codesign/level.h"

namespace tilewright::codesign {

Result<DesignResult> at_level(const Level& level, const DesignEvaluator& evaluator,
                              const Hardware& hardware, const DesignResult& model) {
  const Workload& workload = evaluator.workload();
  std::vector<LayerResult> layers = model.layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].on_host) continue;
    Result<double> cycles = level.cycles(hardware, workload.layers[i], layers[i]);
    if (!cycles)
      return tl::unexpected<Error>(std::move(cycles.error()).at(workload.layers[i].layer.name));
    layers[i].cycles = *cycles;
  }
  return sum_up(workload, evaluator.technology(), hardware, std::move(layers));
}

}  // namespace tilewright::codesign
