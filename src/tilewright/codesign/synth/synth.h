// The level of synthesis: what Yosys makes of a design's Verilog in place of the model's cells.
//
// Example: `at_level(synth_level(), evaluator, design, result)` is `result` with the area of the
// synthesised cells; its cycles stay.
#pragma once

#include "tilewright/accel/common/rtl/synth.h"
#include "tilewright/codesign/level.h"

namespace tilewright::codesign {

/// The whole accelerator for the xc7 family.
accel::SynthesisTask synthesis_task(const Hardware& hardware);

/// `synth`, for technologies that count cells. Areas of the parts keep their proportions. Its
/// errors: those of accel::synthesise; before a search also Tool (no Yosys, or one too old).
Level synth_level();

}  // namespace tilewright::codesign
