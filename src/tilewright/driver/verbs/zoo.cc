// zoo: real networks with seeded weights, as ONNX files.
#include "tilewright/zoo/zoo.h"

#include <fmt/format.h>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/graph/onnx/export.h"

namespace tilewright::driver {
namespace {

constexpr double kMostElements = 1 << 30;  // along one axis

struct ZooOptions {
  std::string name, output;
  zoo::Options options;
};

Result<int> list(bool as_json) {
  nlohmann::ordered_json json = document("zoo");
  std::vector<std::vector<std::string>> rows = {{"network", "size", "what"}};
  for (const zoo::Entry& entry : zoo::entries()) {
    rows.push_back({entry.name, std::to_string(entry.default_size), entry.doc});
    json["networks"].push_back(
        {{"name", entry.name}, {"size", entry.default_size}, {"what", entry.doc}});
  }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

Result<int> write(const ZooOptions& options, bool as_json) {
  const std::string path = options.output.empty() ? options.name + ".onnx" : options.output;
  TW_TRY_STATUS(check_outputs({{path}, {}}, {}, as_json));
  const auto build = [&] {
    const PromptEnd prompt;  // drawing weights asks nobody
    return zoo::build(options.name, options.options);
  };
  const graph::Graph graph = TW_TRY(build());
  TW_TRY_STATUS(check_interrupt());
  graph::ExportOptions export_options;
  export_options.metadata = {{"tilewright.seed", std::to_string(options.options.seed)}};
  TW_TRY_STATUS(graph::save_onnx(path, graph, export_options));
  int64_t weights = 0;
  for (const graph::Value& value : graph.values)
    if (value.constant) weights += value.constant->size();
  nlohmann::ordered_json json = document("zoo");
  json["path"] = path;
  json["nodes"] = graph.nodes.size();
  json["weights"] = weights;
  if (as_json) print_json(json);
  say(fmt::format("{}: {} nodes, {:.1f} M weights", path, graph.nodes.size(),
                  static_cast<double>(weights) / 1e6));
  return 0;
}

}  // namespace

void add_zoo(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("zoo",
                           "Lists networks (`zoo list`), or writes one as an ONNX file "
                           "with seeded weights (`zoo resnet18 -o r.onnx`)");
  auto options = std::make_shared<ZooOptions>();
  verb.add_option("name", options->name, "a network, or `list`").required();
  verb.add_option("-o,--output", options->output, "file to write (default NAME.onnx)");
  verb.add_option("--seed", options->options.seed, "of the weights");
  verb.add_option("--batch", options->options.batch, "batch size").in_range(1, kMostElements);
  verb.add_option("--size", options->options.size, "height and width, or sequence length")
      .in_range(1, kMostElements);
  verb.callback([&context, options] {
    context.action = [&context, options]() -> Result<int> {
      if (options->name != "list") return write(*options, context.json);
      const zoo::Options usual, &given = options->options;
      if (!options->output.empty() || given.seed != usual.seed || given.batch != usual.batch ||
          given.size != usual.size)
        return fail(ErrorKind::Usage, "list takes no options", "they say how a network is written",
                    "tilewright zoo resnet18 -o FILE.onnx");
      return list(context.json);
    };
  });
}

}  // namespace tilewright::driver
