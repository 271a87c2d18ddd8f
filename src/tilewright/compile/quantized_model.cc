#include "tilewright/compile/quantized_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace tilewright::compile {

bool is_border(const graph::Placement& place) {
  static const std::set<std::string> border = {
      "ArgMax",     "ArgMin",       "Cast",           "DequantizeLinear",
      "Flatten",    "FromTiles",    "Identity",       "Im2Col",
      "LogSoftmax", "Pad",          "QuantizeLinear", "Reshape",
      "Softmax",    "SpaceToDepth", "Squeeze",        "Sub",
      "ToTiles",    "TopK",         "Transpose",      "Unsqueeze"};
  return place.meant || border.contains(place.op);
}

Status all_placed(const std::vector<graph::Placement>& places, const std::string& target) {
  std::vector<Error> errors;
  for (const graph::Placement& place : places)
    if (place.where == graph::Where::Cpu && !is_border(place))
      errors.push_back({place.kind,
                        fmt::format("{} ({}) does not run on {}", place.name, place.op, target),
                        {},
                        place.why,
                        {},
                        {}});
  if (errors.empty()) return {};
  Error first = std::move(errors.front());
  first.fix = "--fallback cpu runs them on this machine";
  first.others.assign(std::make_move_iterator(errors.begin() + 1),
                      std::make_move_iterator(errors.end()));
  return tl::unexpected<Error>(std::move(first));
}

std::vector<std::string> devices_of(const graph::Graph& graph,
                                    const std::vector<graph::Placement>& places,
                                    const std::string& device) {
  std::vector<std::string> devices(graph.nodes.size());
  for (size_t n = 0; n < devices.size(); ++n)
    if (places[n].where == graph::Where::Accelerator) devices[n] = device;
  std::vector<std::vector<size_t>> readers(graph.values.size());
  std::vector<int> maker(graph.values.size(), -1);
  for (size_t n = 0; n < devices.size(); ++n) {
    for (graph::ValueId id : graph.nodes[n].inputs)
      if (id >= 0) readers[static_cast<size_t>(id)].push_back(n);
    for (graph::ValueId id : graph.nodes[n].outputs)
      if (id >= 0) maker[static_cast<size_t>(id)] = static_cast<int>(n);
  }
  const std::set<graph::ValueId> outputs(graph.outputs.begin(), graph.outputs.end());
  // A view of a view: each round settles one more.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = 0; n < devices.size(); ++n) {
      if (places[n].where != graph::Where::Nothing || !devices[n].empty()) continue;
      const graph::ValueId in = graph.nodes[n].inputs[0], out = graph.nodes[n].outputs[0];
      const int source = maker[static_cast<size_t>(in)];
      const auto& users = readers[static_cast<size_t>(out)];
      const bool after = source >= 0 && !devices[static_cast<size_t>(source)].empty();
      const bool before = std::any_of(users.begin(), users.end(), [&](size_t user) {
        return !devices[user].empty() || places[user].where == graph::Where::Nothing;
      });
      if (after && before && !outputs.contains(out)) devices[n] = device, changed = true;
    }
  }
  return devices;
}

}  // namespace tilewright::compile
