// The model's cells against what Yosys makes of the Verilog, for xc7, on small random designs.
//
// Yosys synthesises a module once and counts it as often as it occurs, so what a design costs
// beside its operators and memories (control, ports, counters, addresses) weighs most here.
#include "tilewright/accel/fpga/rtl/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

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
  accel::Synthesis model, yosys;
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
    const fpga::Design design = TW_TRY(
        compile::fpga_design(TW_TRY(schedule::replay(func, TW_TRY(space->trace(point)))), device));
    TW_TRY_STATUS(fpga::rtl_supports(design));
    const std::string verilog = fpga::verilog(design, fpga::Numbers::Fixed).text;
    drawn.model = fpga::predicted_cells(verilog);
    drawn.yosys = TW_TRY(
        accel::synthesise({.top = fpga::kTop, .verilog = verilog, .boxed = {}, .library = {}}));
    return drawn;
  }
}

/// By how much a figure of the model is off, in percent of Yosys's.
double off(int64_t model, int64_t yosys) {
  return 100 * (static_cast<double>(model) / std::max(1.0, static_cast<double>(yosys)) - 1);
}

/// Cells of each kind of module, of the model and of Yosys.
void print_modules(const Drawn& drawn) {
  std::map<std::string, std::pair<accel::Cells, accel::Cells>> kinds;
  const auto add = [](accel::Cells& sum, const accel::SynthesisedModule& module) {
    sum.lut += module.copies * module.cells.lut;
    sum.ff += module.copies * module.cells.ff;
  };
  for (const auto& module : drawn.model.modules) add(kinds[module.name].first, module);
  for (const auto& module : drawn.yosys.modules) add(kinds[module.name].second, module);
  for (const auto& [name, cells] : kinds)
    fmt::print("  {}: LUT {} {}, FF {} {}\n", name, cells.first.lut, cells.second.lut,
               cells.first.ff, cells.second.ff);
}

/// Errors of the model over designs, and how often it is equal.
class Errors {
 public:
  void add(const accel::Cells& m, const accel::Cells& y) {
    luts_.push_back(std::abs(off(m.lut, y.lut)));
    ffs_.push_back(std::abs(off(m.ff, y.ff)));
    dsps_ += m.dsp == y.dsp ? 1 : 0;
    brams_ += m.bram18 == y.bram18 ? 1 : 0;
    rams_ += m.lut_ram == y.lut_ram ? 1 : 0;
  }
  void print() const {
    if (luts_.empty()) return;
    const auto within = [](const std::vector<double>& errors) {
      return std::count_if(errors.begin(), errors.end(), [](double e) { return e <= 10; });
    };
    fmt::print(
        "{} designs: LUT off by {:.1f} % in median, {:.1f} at most, {} within 10 %; FF {:.1f}, "
        "{:.1f}, {}; equal: DSP in {}, BRAM18 in {}, LUT RAM in {}\n",
        luts_.size(), quantile(luts_, 0.5), quantile(luts_, 1), within(luts_), quantile(ffs_, 0.5),
        quantile(ffs_, 1), within(ffs_), dsps_, brams_, rams_);
  }

 private:
  std::vector<double> luts_, ffs_;
  int dsps_ = 0, brams_ = 0, rams_ = 0;
};

}  // namespace

int cells(const Selection& selection) {
  const hw::FpgaDevice device =
      hw::load_fpga_device(selection.device == "vu9p" ? "zynq7020" : selection.device).value();
  const int count = selection.count > 0 ? selection.count : 40;
  fmt::print("Designs for {}:\n\n", device.name);
  fmt::print(
      "| design | LUT model | Yosys | off % | FF model | Yosys | off % | DSP model | Yosys | "
      "BRAM18 "
      "model | Yosys | LUT RAM model | Yosys "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  Errors errors;
  for (uint64_t seed = selection.seed; seed < selection.seed + static_cast<uint64_t>(count);
       ++seed) {
    const auto drawn = draw(device, seed);
    if (!drawn) {
      fmt::print("seed {}: {}\n", seed, to_string(drawn.error()));
      continue;
    }
    const accel::Cells m = drawn->model.cells(), y = drawn->yosys.cells();
    fmt::print("| {}, {} | {} | {} | {:+.1f} | {} | {} | {:+.1f} | {} | {} | {} | {} | {} | {} |\n",
               drawn->name, to_string(drawn->design), m.lut, y.lut, off(m.lut, y.lut), m.ff, y.ff,
               off(m.ff, y.ff), m.dsp, y.dsp, m.bram18, y.bram18, m.lut_ram, y.lut_ram);
    if (selection.details) print_modules(*drawn);
    std::fflush(stdout);
    errors.add(m, y);
  }
  errors.print();
  return 0;
}

}  // namespace tilewright::bench
