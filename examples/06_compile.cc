// Compiles an ONNX model and runs it once, in this process: the library behind `tilewright run`.
//   06_compile MODEL.onnx [TARGET]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>

#include "tilewright/compile/backends.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/evaluate.h"
#include "tilewright/graph/onnx/import.h"

namespace compile = tilewright::compile;
namespace graph = tilewright::graph;
using tilewright::Status;

Status compile_and_run(const std::string& path, const std::string& target) {
  graph::ImportOptions import;
  import.evaluate = compile::make_evaluate();  // constants are computed while reading
  const graph::Graph model = TW_TRY(graph::import_onnx(path, import));

  compile::CompileOptions options;
  options.target = TW_TRY(compile::find_target(target));
  options.threads = 2;
  options.observer.warn = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
  const compile::CompiledModel code = TW_TRY(compile::compile_graph(model, options));
  fmt::print("{} steps for {}\n", code.program->steps.size(), options.target.name);

  tilewright::runtime::SessionOptions settings;
  settings.threads = options.threads;
  settings.load_launch =  // GPUs and accelerators
      compile::make_launch_loader({}, std::make_shared<compile::LaunchLog>());
  const auto session = TW_TRY(compile::open_session(code, settings));
  for (const int id : code.program->inputs) {
    const auto& input = code.program->values[static_cast<size_t>(id)];
    tilewright::Array ones(input.dtype, input.shape);
    for (int64_t i = 0; i < ones.size(); ++i) ones.set(i, 1);
    TW_TRY_STATUS(session->set_input(input.name, ones));
  }
  TW_TRY_STATUS(session->run());
  for (const int id : code.program->outputs) {
    const auto& output = code.program->values[static_cast<size_t>(id)];
    const tilewright::Array values = TW_TRY(session->get_output(output.name));
    fmt::print("{} [{}]: {} ...\n", output.name, fmt::join(values.shape(), ", "), values.get(0));
  }
  return {};
}

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "usage: 06_compile MODEL.onnx [TARGET]\n"), 2;
  const Status status = compile_and_run(argv[1], argc > 2 ? argv[2] : "cpu");
  if (!status) fmt::print(stderr, "{}\n", to_string(status.error()));
  return status ? 0 : 1;
}
