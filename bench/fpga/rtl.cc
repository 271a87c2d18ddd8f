// The Verilog under Verilator against the cycle simulator, values and cycles: random designs, and
// C1 to C15 scaled down, whose values are the interpreter's besides.
#include "tilewright/accel/fpga/rtl/rtl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "figures.h"
#include "programs.h"
#include "tilewright/accel/fpga/testing/random_design.h"
#include "tilewright/codegen/fpga/testing/run_design.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tune/fpga/space.h"

namespace tilewright::bench {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::I16, DType::I8};

/// What differs between Verilog and simulator for one design; empty if nothing: `arguments` are
/// then what they computed.
std::string differs_on(fpga::RtlModel& model, const fpga::Design& design,
                       const fpga::RunOptions& options, std::vector<std::string>& arguments) {
  std::vector<std::string> simulated = arguments, run = arguments;
  const auto tsim = fpga::simulate(design, options, simulated);
  if (!tsim) return to_string(tsim.error());
  const auto rtl = model.run(design, options, run);
  if (!rtl) return to_string(rtl.error());
  if (tsim->cycles != rtl->cycles)
    return fmt::format("{} cycles in the simulator, {} in the Verilog", tsim->cycles, rtl->cycles);
  if (simulated != run) return "other values";
  arguments = std::move(run);
  return "";
}

/// How many of `count` random designs differ.
int random_designs(int count, uint64_t first_seed) {
  constexpr int kOfOneBuild = 10;  // a build serves all designs of one structure
  const auto begin = Clock::now();
  std::map<std::string, int> types;
  int done = 0, wrong = 0;
  for (uint64_t seed = first_seed; done < count; ++seed) {
    fpga::testing::Structure structure = fpga::testing::random_structure(seed);
    structure.type = fpga::number_of(kTypes[seed % 4]);
    structure.bus.beat_bytes =
        std::max(structure.bus.beat_bytes, structure.lanes * structure.type.bytes());
    Rng rng(seed);
    std::unique_ptr<fpga::RtlModel> model;
    for (int i = 0; i < kOfOneBuild && done < count; ++i, ++done) {
      const fpga::testing::Sizes sizes = fpga::testing::random_sizes(rng);
      const fpga::Design design = fpga::testing::random_design(structure, sizes);
      if (model == nullptr) {
        auto made = fpga::make_rtl(design, fpga::Numbers::Table);
        if (!made) {
          fmt::print("{}\n", to_string(made.error()));
          return count;
        }
        model = *std::move(made);
      }
      auto arguments = fpga::testing::random_arguments(structure, sizes, rng);
      fpga::RunOptions options;
      options.memory.seed = static_cast<uint32_t>(rng.next());
      options.memory.stall_percent = i % 2 == 0 ? 0 : 30;
      const std::string differs = differs_on(*model, design, options, arguments);
      ++types[name(structure.type)];
      if (differs.empty()) continue;
      ++wrong;
      fmt::print("seed {} design {}: {}\n", seed, i, differs);
    }
    std::fflush(stdout);
  }
  for (const auto& [type, times] : types) fmt::print("{}: {} designs\n", type, times);
  fmt::print("{} of {} designs differ in values or cycles; {:.0f} s\n", wrong, done, since(begin));
  return wrong;
}

// C1 to C15 with so many channels for each of theirs, and so small images: kernel and stride stay.
constexpr int64_t kChannels = 32, kLeastChannels = 2, kMostSize = 14;
// Verilator takes minutes for more floating-point units, and for more cycles.
constexpr int64_t kMostProducts = 8;
constexpr double kMostCycles = 100'000;

cost::YoloConv scaled_down(cost::YoloConv conv) {
  const auto channels = [](int64_t n) { return std::max(kLeastChannels, n / kChannels); };
  conv.inputs = channels(conv.inputs);
  conv.outputs = channels(conv.outputs);
  conv.size = std::min(conv.size, kMostSize);
  return conv;
}

struct Scaled {
  std::string design;
  int64_t cycles = 0;
};

/// A random design of `func` with few products side by side. errors: what differs.
Result<Scaled> scaled_layer(const Func& func, const hw::FpgaDevice& device, Rng& rng) {
  tune::FpgaSpaceOptions options;
  options.as_steps = true;
  const auto space = TW_TRY(tune::FpgaSpace::create(device, func, options));
  search::Point point;
  cost::FpgaDesign drawn;
  do {
    point = space->space().random(rng);
    drawn = space->design(point);
  } while (drawn.uo * drawn.ui * drawn.us > kMostProducts ||
           !(space->judge(point).cost <= kMostCycles));
  Scaled out{to_string(drawn), 0};
  const fpga::Design design = TW_TRY(
      compile::fpga_design(TW_TRY(schedule::replay(func, TW_TRY(space->trace(point)))), device));
  const auto model = TW_TRY(fpga::make_rtl(design, fpga::Numbers::Fixed));
  const interp::Arguments given = lower::testing::arguments_of(func, rng.next());
  const interp::Outcome expected = TW_TRY(interp::run(func, given));
  std::vector<std::string> bytes = codegen::testing::bytes_of(func, given), untouched = bytes;
  fpga::RunOptions run;
  run.memory = compile::memory_timing(device);
  out.cycles = TW_TRY(fpga::simulate(design, run, untouched)).cycles;
  std::string differs = differs_on(*model, design, run, bytes);
  if (differs.empty()) differs = codegen::testing::difference(func, expected, bytes);
  if (!differs.empty()) return fail(ErrorKind::Invalid, differs, out.design);
  return out;
}

/// Each layer in one of the four types, the next one for the next seed. How many differ.
int scaled_layers(const Selection& selection, const hw::FpgaDevice& device) {
  fmt::print("| layer, scaled down | type | design | cycles | s |\n|---|---|---|---|---|\n");
  int wrong = 0;
  uint64_t at = selection.seed;
  for (const auto& [name, conv] : yolo_convs(selection.layers)) {
    const auto begin = Clock::now();
    const DType dtype = kTypes[at++ % std::size(kTypes)];
    Rng rng(at);
    const auto outcome = scaled_layer(conv_program(name, scaled_down(conv), dtype), device, rng);
    wrong += outcome ? 0 : 1;
    fmt::print("| {} | {} | {} | {} | {:.0f} |\n", name, tilewright::name(dtype),
               outcome ? outcome->design : to_string(outcome.error()),
               outcome ? outcome->cycles : 0, since(begin));
    std::fflush(stdout);
  }
  fmt::print("{} scaled layers differ in values or cycles\n", wrong);
  return wrong;
}

}  // namespace

int rtl(const Selection& selection) {
  int wrong = 0;
  if (selection.layers.empty())
    wrong += random_designs(selection.count > 0 ? selection.count : 200, selection.seed);
  wrong += scaled_layers(selection, hw::load_fpga_device(selection.device).value());
  return wrong == 0 ? 0 : 1;
}

}  // namespace tilewright::bench
