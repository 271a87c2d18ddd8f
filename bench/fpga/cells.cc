// The model's cells against what Yosys makes of the Verilog, for xc7, on small random designs.
//
// Yosys synthesises a module once and counts it as often as it occurs, so what a design costs
// beside its operators and memories (control, ports, counters, addresses) weighs most here.
#include <fmt/format.h>

#include <cmath>

#include "figures.h"
#include "programs.h"
#include "tilewright/accel/common/rtl/synth.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/base/rng.h"
#include "tilewright/base/statistics.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tune/fpga/space.h"

namespace tilewright::bench {
namespace {

constexpr int64_t kMostProducts = 32;  // side by side: Yosys takes minutes for more

struct Drawn {
  std::string name;
  cost::FpgaDesign design;
  hw::FpgaCells model;
  accel::Cells yosys;
};

Result<Drawn> draw(const hw::FpgaDevice& device, uint64_t seed) {
  Rng rng(seed);
  const DType dtypes[] = {DType::I8, DType::I16, DType::F32};
  const DType dtype = dtypes[rng.below(3)];
  const cost::YoloConv conv = {2 << rng.below(3), 4 << rng.below(3), rng.between(6, 14),
                               rng.chance(0.5) ? 1 : 3, 1};
  Drawn drawn;
  drawn.name = fmt::format("{}to{} {}x{} k{} {}", conv.inputs, conv.outputs, conv.size, conv.size,
                           conv.kernel, name(dtype));
  const Func func = conv_program(fmt::format("d{}", seed), conv, dtype);
  tune::FpgaSpaceOptions options;
  options.as_steps = true;
  options.model.path = hw::FpgaPath::Rtl;
  const auto space = TW_TRY(tune::FpgaSpace::create(device, func, options));
  for (;;) {
    const search::Point point = space->space().random(rng);
    drawn.design = space->design(point);
    const int64_t products = drawn.design.uo * drawn.design.ui * drawn.design.us;
    if (products > kMostProducts || !space->judge(point).reason.empty()) continue;
    drawn.model = space->model(point).cells(drawn.design);
    const fpga::Design design = TW_TRY(
        compile::fpga_design(TW_TRY(schedule::replay(func, TW_TRY(space->trace(point)))), device));
    TW_TRY_STATUS(fpga::rtl_supports(design));
    drawn.yosys =
        TW_TRY(accel::synthesise({.top = fpga::kTop,
                                  .verilog = fpga::verilog(design, fpga::Numbers::Fixed).text,
                                  .boxed = {},
                                  .library = {}}))
            .cells();
    return drawn;
  }
}

/// By how much a figure of the model is off, in percent of Yosys's.
double off(double model, int64_t yosys) {
  return 100 * std::abs(model - static_cast<double>(yosys)) /
         std::max(1.0, static_cast<double>(yosys));
}

}  // namespace

int cells(const Selection& selection) {
  const hw::FpgaDevice device =
      hw::load_fpga_device(selection.device == "vu9p" ? "zynq7020" : selection.device).value();
  const int count = selection.count > 0 ? selection.count : 40;
  fmt::print(
      "| design | LUT model | Yosys | FF model | Yosys | DSP model | Yosys | BRAM18 model | Yosys "
      "|\n|---|---|---|---|---|---|---|---|---|\n");
  std::vector<double> luts, ffs;
  int dsps = 0, brams = 0, done = 0;
  for (uint64_t seed = selection.seed; seed < selection.seed + static_cast<uint64_t>(count);
       ++seed) {
    const auto drawn = draw(device, seed);
    if (!drawn) {
      fmt::print("seed {}: {}\n", seed, to_string(drawn.error()));
      continue;
    }
    const hw::FpgaCells& m = drawn->model;
    const accel::Cells& y = drawn->yosys;
    fmt::print("| {}, {} | {:.0f} | {} | {:.0f} | {} | {:.0f} | {} | {} | {} |\n", drawn->name,
               to_string(drawn->design), m.luts, y.lut, m.ffs, y.ff, m.dsps, y.dsp, m.bram18,
               y.bram18);
    std::fflush(stdout);
    ++done;
    luts.push_back(off(m.luts, y.lut));
    ffs.push_back(off(m.ffs, y.ff));
    dsps += m.dsps == static_cast<double>(y.dsp) ? 1 : 0;
    brams += m.bram18 == y.bram18 ? 1 : 0;
  }
  fmt::print(
      "{} designs: LUT off by {:.0f} % in median, {:.0f} at most; FF {:.0f}, {:.0f}; DSP equal in "
      "{}, BRAM18 in {}\n",
      done, quantile(luts, 0.5), quantile(luts, 1), quantile(ffs, 0.5), quantile(ffs, 1), dsps,
      brams);
  return 0;
}

}  // namespace tilewright::bench
