#include "tilewright/driver/verify/reference.h"

#include <fmt/format.h>

#include "tilewright/compile/evaluate.h"
#include "tilewright/driver/console.h"
#include "tilewright/interp/interp.h"

namespace tilewright::driver {

Result<std::map<std::string, Array>> run_reference(const graph::Graph& graph,
                                                   const std::map<std::string, Array>& inputs) {
  std::vector<Array> values(graph.values.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (graph.values[i].constant) values[i] = *graph.values[i].constant;
  for (graph::ValueId id : graph.inputs) {
    const auto it = inputs.find(graph.values[id].name);
    if (it == inputs.end())
      return fail(ErrorKind::Invalid, fmt::format("no value for input {}", graph.values[id].name));
    values[id] = it->second;
  }
  std::map<std::string, Array> named;
  Progress progress("interpreting");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    progress.update(static_cast<int64_t>(i), static_cast<int64_t>(graph.nodes.size()), node.name);
    TW_TRY_STATUS(check_interrupt());
    std::vector<Array> arguments;
    for (graph::ValueId id : node.inputs) arguments.push_back(id < 0 ? Array() : values[id]);
    tensor::OpCall call = graph::op_call(graph, node);
    // Shapes that were bounds at compile time are known here.
    for (size_t k = 0; k < arguments.size(); ++k)
      if (!arguments[k].empty_handle()) call.inputs[k].shape = arguments[k].shape();
    Result<std::vector<Array>> outputs = compile::interpret_op(call, arguments);
    if (!outputs) return tl::unexpected<Error>(std::move(outputs.error()).at(node.name));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] < 0) continue;
      values[node.outputs[k]] = (*outputs)[k];
      named[graph.values[node.outputs[k]].name] = (*outputs)[k];
    }
  }
  for (graph::ValueId id : graph.outputs) named[graph.values[id].name] = values[id];
  return named;
}

Result<std::map<std::string, Array>> run_reference(const Func& func,
                                                   const std::map<std::string, Array>& inputs) {
  interp::Arguments arguments;
  interp::Options options;
  options.stop = [] { return interrupted(); };
  for (const auto& [name, value] : inputs) arguments.arrays[name] = value;
  const interp::Outcome outcome = TW_TRY(interp::run(func, arguments, options));
  return std::map<std::string, Array>(outcome.outputs.begin(), outcome.outputs.end());
}

}  // namespace tilewright::driver
