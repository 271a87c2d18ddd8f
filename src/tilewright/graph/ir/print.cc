#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {
namespace {

std::string number(double value) { return fmt::format("{}", value); }

/// Arrays of up to eight elements print their values, larger ones only their type.
std::string text(const Array& array) {
  const tensor::TensorType type{array.dtype(), array.shape()};
  if (array.empty_handle() || array.size() > 8) return to_string(type);
  std::vector<std::string> items;
  for (int64_t i = 0; i < array.size(); ++i)
    items.push_back(is_float(array.dtype()) ? number(array.get(i))
                                            : fmt::format("{}", array.get_int(i)));
  if (array.shape().empty()) return items[0];
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

std::string text(const tensor::AttrValue& value) {
  return std::visit(
      Overloaded{
          [](int64_t i) { return fmt::format("{}", i); }, [](double d) { return number(d); },
          [](const std::string& s) { return '"' + s + '"'; },
          [](const std::vector<int64_t>& v) { return to_string(Shape(v)); },
          [](const std::vector<double>& v) { return fmt::format("[{}]", fmt::join(v, ", ")); },
          [](const std::vector<std::string>& v) {
            return fmt::format("[\"{}\"]", fmt::join(v, "\", \""));
          },
          [](const Array& a) { return text(a); }},
      value);
}

std::string list_of(const Graph& graph, const std::vector<ValueId>& ids, bool types) {
  std::vector<std::string> items;
  for (ValueId id : ids) {
    if (id < 0) {
      items.emplace_back("_");
      continue;
    }
    const Value& value = graph.values[static_cast<size_t>(id)];
    if (types) {
      items.push_back(fmt::format("{}: {}", value.name, to_string(value.type)));
    } else if (value.constant && value.constant->size() <= 8) {
      items.push_back(text(*value.constant));
    } else {
      items.push_back(value.name);
    }
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

}  // namespace

std::string to_string(const tensor::TensorType& type) {
  std::vector<std::string> dims;
  for (size_t i = 0; i < type.shape.size(); ++i)
    dims.push_back(
        fmt::format("{}{}", static_cast<int>(i) == type.dynamic_axis ? "<=" : "", type.shape[i]));
  return fmt::format("{}[{}]", name(type.dtype), fmt::join(dims, ", "));
}

std::string print(const Graph& graph) {
  std::string out = fmt::format("graph {}({}) {{\n", graph.name.empty() ? "_" : graph.name,
                                list_of(graph, graph.inputs, true));
  std::vector<bool> shown(graph.values.size(), false);
  for (const Node& node : graph.nodes)
    for (ValueId id : node.inputs) {
      if (id < 0 || shown[static_cast<size_t>(id)]) continue;
      shown[static_cast<size_t>(id)] = true;
      const Value& value = graph.values[static_cast<size_t>(id)];
      if (value.constant && value.constant->size() > 8)
        out += fmt::format("  const {}: {}\n", value.name, to_string(value.type));
    }
  for (const Node& node : graph.nodes) {
    std::vector<std::string> args;
    if (!node.inputs.empty()) args.push_back(list_of(graph, node.inputs, false));
    for (const auto& [key, value] : node.attrs.values)
      args.push_back(fmt::format("{}={}", key, text(value)));
    out +=
        fmt::format("  {} = {}{}({})\n", list_of(graph, node.outputs, true),
                    node.domain.empty() ? "" : node.domain + ".", node.op, fmt::join(args, ", "));
  }
  return out + fmt::format("  return {}\n}}\n", list_of(graph, graph.outputs, false));
}

}  // namespace tilewright::graph
