// Area by Yosys.
#include "tilewright/accel/common/rtl/synth.h"

#include "tilewright/accel/vta/rtl/rtl.h"

namespace tilewright::vta {

Result<Area> synthesise(const Config& config, double limit_seconds) {
  TW_TRY_STATUS(rtl_supports(config));
  accel::SynthesisTask task{kTop, verilog(config), {}, {}, limit_seconds};
  const accel::Synthesis done = TW_TRY(accel::synthesise(task));
  const accel::Cells cells = done.cells();
  return Area{cells.lut, cells.ff, cells.dsp, cells.bram18, cells.carry, done.seconds};
}

}  // namespace tilewright::vta
