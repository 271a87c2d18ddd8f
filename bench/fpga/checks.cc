// What is generated for FPGAs against what it should be: the C++ against the code for processors,
// the Verilog against the cycle simulator.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <map>

#include "figures.h"
#include "programs.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/accel/fpga/testing/random_design.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/lower/testing/meaning.h"

namespace tilewright::bench {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What `func` computes from `inputs`, on one target.
Result<Array> result_on(const std::string& target, const std::string& hw, const Func& func,
                        const std::map<std::string, Array>& inputs) {
  compile::CompileOptions options;
  compile::TargetOptions wanted;
  wanted.hw = hw;
  options.target = TW_TRY(compile::find_target(target, wanted));
  options.threads = 1;
  const compile::CompiledModel code = TW_TRY(compile::compile_func(func, options));
  runtime::SessionOptions settings;
  settings.threads = 1;
  settings.load_launch = compile::make_launch_loader({}, std::make_shared<compile::LaunchLog>());
  const auto session = TW_TRY(compile::open_session(code, settings));
  for (const auto& [name, array] : inputs) TW_TRY_STATUS(session->set_input(name, array));
  TW_TRY_STATUS(session->run());
  return session->get_output(
      code.program->values[static_cast<size_t>(code.program->outputs.at(0))].name);
}

/// `equal`, or what is wrong.
std::string compared(const Func& func, const std::string& hw) {
  const auto inputs = lower::testing::arguments_of(func, 1).arrays;  // small whole numbers: exact
  const auto wanted = result_on("cpu", "", func, inputs);
  if (!wanted) return to_string(wanted.error());
  const auto got = result_on("fpga", hw, func, inputs);
  if (!got) return to_string(got.error());
  if (wanted->bytes() != got->bytes()) return "another size";
  for (int64_t i = 0; i < wanted->size(); ++i)
    if (wanted->get(i) != got->get(i))
      return fmt::format("element {}: {} on the processor, {} in the C++", i, wanted->get(i),
                         got->get(i));
  return "equal";
}

/// What differs between Verilog and simulator for one design; empty if nothing.
std::string compared(fpga::RtlModel& model, const fpga::Design& design,
                     const fpga::RunOptions& options, const std::vector<std::string>& arguments) {
  std::vector<std::string> simulated = arguments, run = arguments;
  const auto tsim = fpga::simulate(design, options, simulated);
  if (!tsim) return to_string(tsim.error());
  const auto rtl = model.run(design, options, run);
  if (!rtl) return to_string(rtl.error());
  if (tsim->cycles != rtl->cycles)
    return fmt::format("{} cycles in the simulator, {} in the Verilog", tsim->cycles, rtl->cycles);
  return simulated == run ? "" : "other values";
}

}  // namespace

int layers_check(const Selection& selection) {
  const auto begin = std::chrono::steady_clock::now();
  int wrong = 0;
  fmt::print("| layer | type | C++ against the processor's code | s |\n|---|---|---|---|\n");
  for (const auto& [name, conv] : yolo_convs(selection.layers))
    for (const DType dtype : {DType::F32, DType::I8}) {
      const auto start = std::chrono::steady_clock::now();
      const std::string outcome = compared(conv_program(name, conv, dtype), selection.device);
      fmt::print("| {} | {} | {} | {:.1f} |\n", name, tilewright::name(dtype), outcome,
                 seconds_since(start));
      std::fflush(stdout);
      wrong += outcome == "equal" ? 0 : 1;
    }
  fmt::print("{} wrong; {:.0f} s\n", wrong, seconds_since(begin));
  return wrong == 0 ? 0 : 1;
}

int rtl(const Selection& selection) {
  const int count = selection.count > 0 ? selection.count : 200;
  constexpr int kOfOneBuild = 10;  // a build serves all designs of one structure
  const auto begin = std::chrono::steady_clock::now();
  std::map<std::string, int> types;
  int done = 0, wrong = 0;
  const DType wanted[] = {DType::F32, DType::BF16, DType::I16, DType::I8};
  for (uint64_t seed = selection.seed; done < count; ++seed) {
    fpga::testing::Structure structure = fpga::testing::random_structure(seed);
    structure.type = fpga::number_of(wanted[seed % 4]);
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
          return 1;
        }
        model = *std::move(made);
      }
      const auto arguments = fpga::testing::random_arguments(structure, sizes, rng);
      fpga::RunOptions options;
      options.memory.seed = static_cast<uint32_t>(rng.next());
      options.memory.stall_percent = i % 2 == 0 ? 0 : 30;
      const std::string differs = compared(*model, design, options, arguments);
      ++types[name(structure.type)];
      if (differs.empty()) continue;
      ++wrong;
      fmt::print("seed {} design {}: {}\n", seed, i, differs);
    }
    std::fflush(stdout);
  }
  for (const auto& [type, times] : types) fmt::print("{}: {} designs\n", type, times);
  fmt::print("{} of {} designs differ in values or cycles; {:.0f} s\n", wrong, done,
             seconds_since(begin));
  return wrong == 0 ? 0 : 1;
}

}  // namespace tilewright::bench
