#include "tilewright/compile/quantize_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/compile/evaluate.h"

namespace tilewright::compile {
namespace {

/// Scales that come from nothing but zeros fit no other input.
void warn_of_zeros(const graph::Graph& graph, const graph::Ranges& ranges, size_t samples,
                   const Observer& observer) {
  for (const graph::ValueId id : graph.inputs) {
    const auto i = static_cast<size_t>(id);
    if (i >= ranges.values.size() || ranges.values[i].count == 0) continue;
    if (ranges.values[i].lo != 0 || ranges.values[i].hi != 0) continue;
    observer.say(
        fmt::format("warning: input '{}' is 0 in all {} calibration samples: results for other "
                    "inputs will be useless\n  fix: calibrate with inputs as the model will see",
                    graph.values[i].name, samples));
  }
}

}  // namespace

Result<graph::Ranges> observe(const graph::Graph& graph, const Samples& samples,
                              const CompileOptions& options) {
  graph::Graph watched = graph;
  std::vector<graph::ValueId> ids;
  for (const graph::Node& node : graph.nodes)
    for (graph::ValueId id : node.outputs)
      if (id >= 0 && graph.values[static_cast<size_t>(id)].type.dtype == DType::F32)
        ids.push_back(id);
  for (graph::ValueId id : ids)
    if (std::find(watched.outputs.begin(), watched.outputs.end(), id) == watched.outputs.end())
      watched.outputs.push_back(id);
  CompileOptions cpu = options;
  cpu.target = hw::as_target(options.host);
  const CompiledModel model = TW_TRY(compile_graph(watched, cpu));
  const auto session = TW_TRY(open_session(model, {}));
  graph::Ranges ranges;
  for (size_t s = 0; s < samples.size(); ++s) {
    TW_TRY_STATUS(options.observer.check());
    options.observer.step("calibrating", static_cast<int64_t>(s),
                          static_cast<int64_t>(samples.size()), "");
    for (const auto& [input, value] : samples[s]) TW_TRY_STATUS(session->set_input(input, value));
    for (graph::ValueId id : graph.inputs)
      accumulate(ranges, id, samples[s].at(graph.values[static_cast<size_t>(id)].name));
    TW_TRY_STATUS(session->run());
    for (graph::ValueId id : ids)
      accumulate(ranges, id,
                 TW_TRY(session->get_output(graph.values[static_cast<size_t>(id)].name)));
  }
  options.observer.end("calibrating");
  return ranges;
}

Result<QuantizedModel> quantize_model(const graph::Graph& model, const QuantizeSettings& settings,
                                      const CompileOptions& options, graph::QuantizeOptions form) {
  graph::PassContext context;
  context.evaluate = make_evaluate(options.observer);
  QuantizedModel result;
  if (graph::is_qdq(model)) {
    result.quantized = TW_TRY(graph::from_qdq(model, context, form.target));
    return result;
  }
  if (!settings.samples)
    return fail(
        ErrorKind::Usage,
        fmt::format("{} computes in 8-bit integers, the model is in f32", options.target.name), {},
        "--quantize calibration.npz (or --quantize random for a first try)");
  result.prepared = TW_TRY(graph::prepare_quantize(model, context, form.target));
  result.calibration = TW_TRY(settings.samples(*result.prepared));
  const graph::Ranges ranges = TW_TRY(observe(*result.prepared, result.calibration, options));
  warn_of_zeros(*result.prepared, ranges, result.calibration.size(), options.observer);
  form.per_channel = settings.per_channel;
  result.quantized = TW_TRY(graph::quantize(*result.prepared, ranges, form));
  return result;
}

}  // namespace tilewright::compile
