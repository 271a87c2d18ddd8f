#include "tilewright/codesign/level.h"

namespace tilewright::codesign {

Result<DesignResult> at_level(const Level& level, const DesignEvaluator& evaluator,
                              const Hardware& hardware, const DesignResult& below) {
  const Workload& workload = evaluator.workload();
  std::vector<LayerResult> layers = below.layers;
  for (size_t i = 0; level.cycles && i < layers.size(); ++i) {
    if (layers[i].on_host) continue;
    Result<double> cycles = level.cycles(hardware, workload.layers[i], layers[i]);
    if (!cycles)
      return tl::unexpected<Error>(std::move(cycles.error()).at(workload.layers[i].layer.name));
    layers[i].cycles = *cycles;
  }
  DesignResult result = sum_up(workload, evaluator.technology(), hardware, std::move(layers));
  result.area = level.area ? TW_TRY(level.area(hardware, evaluator.technology())) : below.area;
  return result;
}

}  // namespace tilewright::codesign
