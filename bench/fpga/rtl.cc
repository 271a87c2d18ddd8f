// The Verilog under Verilator against the cycle simulator, values and cycles: random designs, and
// C1 to C15 scaled down, each by itself or all on one build, whose values are the interpreter's
// besides.
#include "tilewright/accel/fpga/rtl/rtl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "figures.h"
#include "programs.h"
#include "record.h"
#include "tilewright/accel/fpga/merge.h"
#include "tilewright/accel/fpga/sim/testing/random_memory.h"
#include "tilewright/accel/fpga/testing/random_design.h"
#include "tilewright/codegen/fpga/testing/run_design.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/cost/fpga/common.h"
#include "tilewright/cost/sums/computation.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/rules/fpga/schedule.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tune/fpga/space.h"

namespace tilewright::bench {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A design that takes more hangs.
constexpr int64_t kMostRandomCycles = 1'000'000;

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

/// `count` designs of one random structure, the first one in the order of the seed, on one build.
/// errors: those of the build.
Result<Finding> random_designs(uint64_t seed, int count) {
  fpga::testing::Structure structure = fpga::testing::random_structure(seed);
  structure.type = fpga::number_of(kTypes[seed % std::size(kTypes)]);
  structure.bus.beat_bytes =
      std::max(structure.bus.beat_bytes, structure.lanes * structure.type.bytes());
  Finding finding{name(structure.type), 0, 0, 0, ""};
  Rng rng(seed);
  std::unique_ptr<fpga::RtlModel> model;
  for (int i = 0; i < count; ++i) {
    const fpga::testing::Sizes sizes = fpga::testing::random_sizes(rng);
    const fpga::Design design = fpga::testing::random_design(structure, sizes);
    if (model == nullptr)
      model = TW_TRY(fpga::make_rtl(design, fpga::Numbers::Table, fpga::Runs::Short));
    auto arguments = fpga::testing::random_arguments(structure, sizes, rng);
    fpga::RunOptions options;
    options.memory = fpga::testing::random_memory(rng);
    options.max_cycles = kMostRandomCycles;
    const std::string differs = differs_on(*model, design, options, arguments);
    ++finding.count;
    if (differs.empty()) continue;
    ++finding.wrong;
    finding.text += fmt::format("; design {}: {}", i, differs);
  }
  return finding;
}

/// How many of `count` random designs differ.
int random_builds(const Selection& selection, Record& record) {
  constexpr int kOfOneBuild = 10;  // a build serves all designs of one structure
  const int count = selection.count > 0 ? selection.count : 200;
  std::map<std::string, int64_t> types;
  int64_t done = 0, wrong = 0;
  double seconds = 0;
  for (uint64_t seed = selection.seed; done < count; ++seed) {
    const int designs = static_cast<int>(std::min<int64_t>(kOfOneBuild, count - done));
    const std::string name = fmt::format("seed {}, {} designs", seed, designs);
    Finding found;
    if (const Finding* before = record.find(name)) {
      found = *before;
    } else {
      const auto begin = Clock::now();
      const auto outcome = random_designs(seed, designs);
      found =
          outcome ? *outcome : Finding{"", designs, designs, 0, "; " + to_string(outcome.error())};
      found.seconds = since(begin);
      record.add(name, found);
    }
    done += found.count;
    wrong += found.wrong;
    seconds += found.seconds;
    types[found.type] += found.count;
    fmt::print("{} of {}: seed {}, {}, {:.0f} s{}\n", done, count, seed, found.type, found.seconds,
               found.text);
    std::fflush(stdout);
  }
  for (const auto& [type, times] : types) fmt::print("{}: {} designs\n", type, times);
  fmt::print("{} of {} designs differ in values or cycles; {:.0f} s\n", wrong, done, seconds);
  return static_cast<int>(wrong);
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
  search::Point point = space->space().random(rng);
  cost::FpgaDesign drawn = space->design(point);
  // No design of so few products takes less than this for a layer.
  const double least = space->model(point).macs() / kMostProducts;
  const double most = std::max(kMostCycles, 2 * least);
  while (drawn.uo * drawn.ui * drawn.us > kMostProducts || !(space->judge(point).cost <= most)) {
    point = space->space().random(rng);
    drawn = space->design(point);
  }
  Scaled out{to_string(drawn), 0};
  const fpga::Design design = TW_TRY(
      compile::fpga_design(TW_TRY(schedule::replay(func, TW_TRY(space->trace(point)))), device));
  const auto model = TW_TRY(fpga::make_rtl(design, fpga::Numbers::Fixed, fpga::Runs::Short));
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
int scaled_layers(const Selection& selection, const hw::FpgaDevice& device, Record& record) {
  fmt::print("| layer, scaled down | type | design | cycles | s |\n|---|---|---|---|---|\n");
  int64_t wrong = 0;
  uint64_t at = selection.seed;
  for (const auto& [name, conv] : yolo_convs(selection.layers)) {
    const DType dtype = kTypes[at++ % std::size(kTypes)];
    const std::string key = fmt::format("{} seed {} on {}", name, at, device.name);
    Finding found{std::string(tilewright::name(dtype)), 1, 0, 0, ""};
    if (const Finding* before = record.find(key)) {
      found = *before;
    } else {
      const auto begin = Clock::now();
      Rng rng(at);
      const auto outcome = scaled_layer(conv_program(name, scaled_down(conv), dtype), device, rng);
      found.wrong = outcome ? 0 : 1;
      found.text = outcome ? fmt::format("{} | {}", outcome->design, outcome->cycles)
                           : to_string(outcome.error()) + " | ";
      found.seconds = since(begin);
      record.add(key, found);
    }
    wrong += found.wrong;
    fmt::print("| {} | {} | {} | {:.0f} |\n", name, found.type, found.text, found.seconds);
    std::fflush(stdout);
  }
  fmt::print("{} scaled layers differ in values or cycles\n", wrong);
  return static_cast<int>(wrong);
}

/// A layer of `shared`: its program, and the model that its design is chosen by.
struct SharedLayer {
  Func func;
  cost::FpgaModel model;
};

Result<SharedLayer> shared_layer(const std::string& name, const cost::YoloConv& conv, DType dtype,
                                 const hw::FpgaDevice& device) {
  const Func func = conv_program(name, scaled_down(conv), dtype);
  const cost::Computation sum = cost::computations_of(func).sums.at(0);
  cost::FpgaOptions options;
  options.dtype = sum.dtypes.front();
  options.as_written = true;
  options.result_bytes = rules::written_bytes(func);
  return SharedLayer{func,
                     TW_TRY(cost::FpgaModel::create(device, TW_TRY(cost::layer_of(sum)), options))};
}

/// The layers on one array, the best for all of them, each with its tiles.
Result<std::vector<fpga::Design>> shared_designs(const std::vector<SharedLayer>& layers,
                                                 const hw::FpgaDevice& device) {
  std::vector<cost::FpgaLayerUse> uses;
  for (const SharedLayer& layer : layers) uses.push_back({&layer.model, 1});
  cost::FpgaSearch search = rules::steps_search(layers[0].func, layers[0].model);
  search.most_products = kMostProducts;
  search.most_pixels = 1;
  search.stays = {cost::FpgaStays::Nothing};
  const auto common = cost::best_common_fpga_design(uses, search);
  if (!common) return fail(ErrorKind::Capacity, "no design for all layers fits");
  std::vector<fpga::Design> designs;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto trace =
        TW_TRY(rules::fpga_trace(layers[i].func, layers[i].model, common->layers[i].design));
    designs.push_back(
        TW_TRY(compile::fpga_design(TW_TRY(schedule::replay(layers[i].func, trace)), device)));
    fmt::print("{}: {}\n", layers[i].func.name, to_string(common->layers[i].design));
  }
  return designs;
}

/// All layers, those of one structure on one build. How many differ.
Result<int> layers_on_one(const Selection& selection, DType dtype, const hw::FpgaDevice& device) {
  std::vector<SharedLayer> layers;
  for (const auto& [name, conv] : yolo_convs(selection.layers))
    layers.push_back(TW_TRY(shared_layer(name, conv, dtype, device)));
  const fpga::MergedDesigns merged = fpga::merge_alike(TW_TRY(shared_designs(layers, device)));
  fmt::print("{} layers, {} structures\n", layers.size(), merged.structures);
  for (const std::string& difference : merged.differences) fmt::print("{}\n", difference);
  fmt::print("| layer, scaled down | type | structure | cycles |\n|---|---|---|---|\n");
  std::map<int, std::unique_ptr<fpga::RtlModel>> models;
  Rng rng(selection.seed);
  int wrong = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Func& func = layers[i].func;
    const fpga::Design& design = merged.designs[i];
    std::unique_ptr<fpga::RtlModel>& model = models[merged.structure[i]];
    if (model == nullptr)
      model = TW_TRY(fpga::make_rtl(design, fpga::Numbers::Table, fpga::Runs::Short));
    const interp::Arguments given = lower::testing::arguments_of(func, rng.next());
    const interp::Outcome expected = TW_TRY(interp::run(func, given));
    std::vector<std::string> bytes = codegen::testing::bytes_of(func, given), simulated = bytes;
    fpga::RunOptions run;
    run.memory = compile::memory_timing(device);
    const int64_t cycles = TW_TRY(fpga::simulate(design, run, simulated)).cycles;
    std::string differs = differs_on(*model, design, run, bytes);
    if (differs.empty()) differs = codegen::testing::difference(func, expected, bytes);
    wrong += differs.empty() ? 0 : 1;
    fmt::print("| {} | {} | {} | {} |\n", func.name, tilewright::name(dtype), merged.structure[i],
               differs.empty() ? std::to_string(cycles) : differs);
    std::fflush(stdout);
  }
  return wrong;
}

}  // namespace

int shared(const Selection& selection) {
  const auto wrong =
      layers_on_one(selection, DType::I8, hw::load_fpga_device(selection.device).value());
  if (!wrong) fmt::print("{}\n", to_string(wrong.error()));
  return wrong && *wrong == 0 ? 0 : 1;
}

int rtl(const Selection& selection) {
  auto record = Record::open(selection.record);
  if (!record) {
    fmt::print("{}\n", to_string(record.error()));
    return 2;
  }
  int wrong = 0;
  if (selection.layers.empty()) wrong += random_builds(selection, *record);
  wrong += scaled_layers(selection, hw::load_fpga_device(selection.device).value(), *record);
  return wrong == 0 ? 0 : 1;
}

}  // namespace tilewright::bench
