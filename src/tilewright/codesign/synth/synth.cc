#include "tilewright/codesign/synth/synth.h"

#include <fmt/format.h>

#include "tilewright/accel/spatial/rtl/rtl.h"
#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::codesign {
namespace {

/// Wide scratchpads take Yosys minutes, and what runs out of time counts as infeasible.
constexpr double kLimitSeconds = 3600;

accel::SynthesisTask task_of(const vta::Config& config) {
  return {.top = vta::kTop, .verilog = vta::verilog(config), .boxed = {}, .library = {}};
}
accel::SynthesisTask task_of(const spatial::Design& design) {
  return spatial::synthesis_task(design);
}

Result<Area> synthesised(const Hardware& hardware, const Technology& technology) {
  accel::SynthesisTask task = synthesis_task(hardware);
  task.limit_seconds = kLimitSeconds;
  const accel::Cells cells = TW_TRY(accel::synthesise(task)).cells();
  const CellCount count{static_cast<double>(cells.lut), static_cast<double>(cells.ff),
                        static_cast<double>(cells.dsp), static_cast<double>(cells.bram18)};
  Area area = codesign::area(Parts(hardware), technology);
  const double times = share(count, technology) / area.total();
  for (double* part : {&area.array, &area.registers, &area.wiring, &area.scratchpad, &area.local,
                       &area.dma, &area.control, &area.bank})
    *part *= times;
  return area;
}

}  // namespace

accel::SynthesisTask synthesis_task(const Hardware& hardware) {
  return std::visit([](const auto& design) { return task_of(design); }, hardware);
}

Level synth_level() {
  return {.name = "synth",
          .cycles = {},
          .area = synthesised,
          .accepts = [](const Technology& technology) -> Status {
            if (technology.formula == Formula::Cells)
              return checked_version(kYosys).map([](const std::string&) {});
            return fail(
                ErrorKind::Unsupported,
                fmt::format("level synth counts cells, technology {} does not", technology.name),
                "Yosys maps designs to cells of an FPGA",
                "a space with technology = \"hasco-fpga\", such as edge");
          }};
}

}  // namespace tilewright::codesign
