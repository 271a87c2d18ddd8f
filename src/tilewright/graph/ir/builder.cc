#include "tilewright/graph/ir/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"

namespace tilewright::graph {

namespace {
constexpr ValueId kFailed = -2;  ///< the value of a node that failed
}  // namespace

ValueId Builder::input(const std::string& name, DType dtype, Shape shape) {
  const ValueId id = graph_.add_value(names_.value(name), {dtype, std::move(shape)});
  graph_.inputs.push_back(id);
  return id;
}

ValueId Builder::constant(const std::string& name, Array value) {
  const tensor::TensorType type{value.dtype(), value.shape()};
  return graph_.add_value(names_.value(name), type, std::move(value));
}

ValueId Builder::ints(const std::vector<int64_t>& values) {
  Array array(DType::I64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.set_int(static_cast<int64_t>(i), values[i]);
  return constant("ints", std::move(array));
}

ValueId Builder::node(const std::string& op, std::vector<ValueId> inputs, AttrList attrs,
                      const std::string& name, const std::string& domain) {
  return nodes(op, std::move(inputs), std::move(attrs), 1, name, domain)[0];
}

std::vector<ValueId> Builder::nodes(const std::string& op, std::vector<ValueId> inputs,
                                    AttrList attrs, int num_outputs, const std::string& name,
                                    const std::string& domain) {
  const std::vector<ValueId> failed(static_cast<size_t>(num_outputs), kFailed);
  if (std::count(inputs.begin(), inputs.end(), kFailed) > 0) return failed;
  Node entry;
  entry.name = name;
  entry.domain = domain;
  entry.op = op;
  entry.inputs = std::move(inputs);
  for (auto& [key, value] : attrs) entry.attrs.values.emplace(key, std::move(value));
  auto outputs = append_node(graph_, names_, std::move(entry), num_outputs);
  if (outputs) return *outputs;
  errors_.push_back(std::move(outputs.error()));
  return failed;
}

void Builder::output(ValueId id, const std::string& name) {
  if (id < 0) return;
  if (!name.empty()) graph_.values[static_cast<size_t>(id)].name = names_.value(name);
  graph_.outputs.push_back(id);
}

const tensor::TensorType& Builder::type(ValueId id) const {
  static const tensor::TensorType none{DType::F32, {}, -1};
  return id < 0 ? none : graph_.values[static_cast<size_t>(id)].type;
}

Result<Graph> Builder::finish() {
  if (!errors_.empty()) {
    Error first = errors_.front();
    first.others.assign(errors_.begin() + 1, errors_.end());
    return tl::unexpected<Error>(std::move(first));
  }
  TW_TRY_STATUS(verify(graph_));
  return graph_;
}

}  // namespace tilewright::graph
