#include "tilewright/codesign/tsim/tsim.h"

#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/sim/tsim.h"
#include "tilewright/codegen/spatial/layer_code.h"
#include "tilewright/rules/vta/schedule.h"
#include "tilewright/tune/vta/cycles.h"

namespace tilewright::codesign {
namespace {

Result<double> cycles_on(const vta::Config& config, const WorkloadLayer& layer,
                         const LayerResult& result) {
  const Func func = TW_TRY(vta_func(layer.layer, config));
  const schedule::Trace trace = TW_TRY(rules::vta_trace(func, config, result.vta->mapping));
  return static_cast<double>(
      TW_TRY(tune::vta_cycles(func, trace, config, result.vta->mapping.copies)));
}

Result<double> cycles_on(const spatial::Design& design, const WorkloadLayer& layer,
                         const LayerResult& result) {
  spatial::LayerOperands operands;
  for (size_t tensor = 0; tensor < operands.address.size(); ++tensor)
    operands.address[tensor] = (uint64_t{1} + tensor) << 34;  // far from each other
  operands.biased = layer.layer.biased;
  const std::vector<spatial::Insn> program = TW_TRY(spatial::with_tokens(
      design, spatial::layer_code(design, layer.layer, result.mapping, operands)));
  return static_cast<double>(TW_TRY(spatial::simulate_time(design, program)).cycles);
}

}  // namespace

Level tsim_level() {
  return {"tsim",
          [](const Hardware& hardware, const WorkloadLayer& layer, const LayerResult& result) {
            return std::visit([&](const auto& design) { return cycles_on(design, layer, result); },
                              hardware);
          },
          {},
          [](const Technology&) -> Status { return {}; }};
}

}  // namespace tilewright::codesign
