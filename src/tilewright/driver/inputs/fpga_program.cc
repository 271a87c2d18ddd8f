#include "tilewright/driver/inputs/fpga_program.h"

#include <fmt/format.h>

#include "tilewright/base/file.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tensor/op.h"

namespace tilewright::driver {
namespace {

/// The tensor expression, loops, or single operator that the user named.
Result<Func> func_of_subject(const SubjectOptions& options) {
  const std::vector<Subject> subjects = TW_TRY(load_subjects(options));
  if (subjects.size() != 1)
    return fail(ErrorKind::Usage, "give exactly one program",
                fmt::format("there are {}", subjects.size()), "name one: --id ID");
  const Subject& subject = subjects[0];
  if (subject.func) return *subject.func;
  if (!subject.graph || subject.graph->nodes.size() != 1)
    return fail(ErrorKind::Usage, fmt::format("'{}' is no single operator", subject.name),
                "an FPGA takes a program, not a network", "name a FILE.tw, or --workload and --id");
  const graph::Node& node = subject.graph->nodes[0];
  tensor::OpCall call = graph::op_call(*subject.graph, node);
  Func func =
      TW_TRY(tensor::op_func(call, options.math == "exact" ? MathMode::Exact : MathMode::Fast));
  func.name = subject.name;
  return func;
}

}  // namespace

bool FpgaProgramOptions::is_package() const {
  return subject.paths.size() == 1 && subject.paths[0].ends_with(".twm");
}

Result<LoadedFpgaProgram> load_fpga_program(const FpgaProgramOptions& options) {
  LoadedFpgaProgram loaded{TW_TRY(hw::load_fpga_device(options.hw)), {}, {}};
  const Func func = TW_TRY(func_of_subject(options.subject));
  if (options.trace.empty()) {
    loaded.program = compile::fpga_program(func, loaded.device);
    if (!loaded.program.remark.empty()) say(loaded.program.remark);
    loaded.steps = schedule::print(loaded.program.steps);
    return loaded;
  }
  loaded.steps = TW_TRY(read_file(options.trace));
  const Result<schedule::Trace> trace = schedule::parse_trace(loaded.steps);
  if (!trace) return tl::unexpected<Error>(Error(trace.error()).at(options.trace));
  loaded.program.func = TW_TRY(schedule::replay(func, *trace));
  return loaded;
}

void add_trace_option(Verb verb, FpgaProgramOptions& options) {
  verb.add_option("--trace", options.trace,
                  "FPGA: schedule steps, one per line (default: those of the model's best design)");
}

}  // namespace tilewright::driver
