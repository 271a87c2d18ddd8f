#include "tilewright/compile/vta/quantized.h"

#include "tilewright/compile/quantize_model.h"
#include "tilewright/graph/layout/tiles.h"

namespace tilewright::compile {

Result<QuantizedModel> prepare_for_vta(const graph::Graph& model, const vta::Config& config,
                                       const QuantizeSettings& settings,
                                       const CompileOptions& options,
                                       const VtaLaunchOptions& launch) {
  QuantizedModel result = TW_TRY(quantize_model(model, settings, options));
  const graph::TileShape shape{config.batch(), config.block_in(), config.block_out()};
  result.laid_out = TW_TRY(graph::tile_layout(result.quantized.graph, shape));
  result.placements = TW_TRY(place_on_vta(result.laid_out, config, launch));
  result.memo = launch.memo;
  if (!settings.allow_cpu) TW_TRY_STATUS(all_placed(result.placements, kVtaDevice));
  return result;
}

}  // namespace tilewright::compile
