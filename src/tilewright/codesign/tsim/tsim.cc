#include "tilewright/codesign/tsim/tsim.h"

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

tl::unexpected<Error> no_programs() {
  return fail(ErrorKind::Unsupported, "designs of `spatial` have no programs yet",
              "the cycle simulator runs programs",
              "leave --fidelity out, or search a space of vta");
}

Result<double> cycles_on(const spatial::Design&, const WorkloadLayer&, const LayerResult&) {
  return no_programs();
}

}  // namespace

Level tsim_level() {
  return {"tsim",
          [](const Hardware& hardware, const WorkloadLayer& layer, const LayerResult& result) {
            return std::visit([&](const auto& design) { return cycles_on(design, layer, result); },
                              hardware);
          },
          [](const Hardware& hardware) -> Status {
            if (std::holds_alternative<vta::Config>(hardware)) return {};
            return no_programs();
          }};
}

}  // namespace tilewright::codesign
