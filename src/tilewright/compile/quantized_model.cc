#include "tilewright/compile/quantized_model.h"

#include <fmt/format.h>

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
  return border.contains(place.op);
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

}  // namespace tilewright::compile
