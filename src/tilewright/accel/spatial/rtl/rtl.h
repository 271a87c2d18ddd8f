// `spatial` as plain Verilog-2005, generated from a design, and under Verilator as the device
// `spatial:rtl`. docs/spatial-timing.md says in which cycle what happens.
#pragma once

#include <memory>
#include <string>

#include "tilewright/accel/common/rtl/synth.h"
#include "tilewright/accel/spatial/device.h"

namespace tilewright::spatial {

/// Whether the generator can build this design. errors: Invalid (`problems`); Unsupported, all
/// reasons at once.
Status rtl_supports(const Design& design);

/// The module at the top, and so the name of the file.
inline constexpr const char* kTop = "spatial";
/// All modules in one file. requires: rtl_supports(design).
std::string verilog(const Design& design);

/// What Yosys is to do with it (accel::synthesise). Private memory has more ports than block RAMs:
/// it is counted by its size. requires: rtl_supports(design).
accel::SynthesisTask synthesis_task(const Design& design);

/// The Verilog under Verilator, compiled on first use into the cache folder. Instructions reach as
/// much DRAM as the host wrote. errors: as rtl_supports; Tool (verilator or the C++ compiler is
/// missing or fails).
Result<std::unique_ptr<Device>> make_rtl(const Design& design);

}  // namespace tilewright::spatial
