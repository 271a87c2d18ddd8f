#include "tilewright/driver/report/explain_analysis.h"

#include <fmt/format.h>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/rules/common/analysis.h"

namespace tilewright::driver {
namespace {

nlohmann::ordered_json to_json(const rules::Analysis& analysis) {
  nlohmann::ordered_json json{{"inputs", analysis.inputs},
                              {"outputs", analysis.outputs},
                              {"spatial_loops", analysis.spatial},
                              {"reduce_loops", analysis.reduce}};
  for (const rules::AnalysedNode& node : analysis.nodes) {
    nlohmann::ordered_json entry{{"name", node.name},           {"tensor", node.tensor},
                                 {"producers", node.producers}, {"consumers", node.consumers},
                                 {"inlinable", node.inlinable}, {"operations", node.operations}};
    for (const rules::AnalysedLoop& loop : node.loops)
      entry["loops"].push_back(
          {{"name", loop.name}, {"trips", loop.trips}, {"reduces", loop.reduces}});
    json["nodes"].push_back(std::move(entry));
  }
  return json;
}

/// The kernels of a subject: names and programs at stage Tensor.
Result<std::vector<std::pair<std::string, Func>>> kernels_of(
    const Subject& subject, const compile::CompileOptions& options) {
  if (!subject.graph)
    return std::vector<std::pair<std::string, Func>>{{subject.name, *subject.func}};
  const compile::CompiledModel model = TW_TRY(compile::plan_graph(*subject.graph, options));
  std::vector<std::pair<std::string, Func>> out;
  for (const graph::Group& group : model.groups) {
    if (group.kind != graph::GroupKind::Kernel) continue;
    out.emplace_back(model.graph.nodes[static_cast<size_t>(group.anchor)].name,
                     TW_TRY(graph::group_func(model.graph, group, options.math)).func);
  }
  return out;
}

}  // namespace

Result<int> explain_analysis(const Subject& subject, const compile::CompileOptions& options,
                             const std::string& node, bool as_json) {
  nlohmann::ordered_json json = document("explain");
  json["subject"] = subject.name;
  std::vector<std::string> names;
  bool found = false;
  for (const auto& [name, func] : TW_TRY(kernels_of(subject, options))) {
    names.push_back(name);
    if (!node.empty() && node != name) continue;
    found = true;
    const rules::Analysis analysis = rules::analyse(func);
    nlohmann::ordered_json entry = to_json(analysis);
    entry["kernel"] = name;
    json["kernels"].push_back(std::move(entry));
    if (!as_json) fmt::print("{}: {}", name, rules::to_text(analysis));
  }
  if (!found && !node.empty()) return unknown_node(node, names);
  if (as_json) print_json(json);
  return 0;
}

}  // namespace tilewright::driver
