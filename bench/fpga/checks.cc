// The C++ that is generated for FPGAs against the code for processors.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <map>

#include "figures.h"
#include "programs.h"
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

}  // namespace tilewright::bench
