#include "tilewright/graph/ir/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"

namespace tilewright::graph {

namespace {
constexpr ValueId kFailed = -2;  ///< the value of a node that failed
}  // namespace

ValueId Builder::input(const std::string& name, DType dtype, Shape shape) {
  Graph& graph = editor_.graph();
  const ValueId id = graph.add_value(editor_.value_name(name), {dtype, std::move(shape)});
  graph.inputs.push_back(id);
  return id;
}

ValueId Builder::constant(const std::string& name, Array value) {
  return editor_.constant(name, std::move(value));
}

ValueId Builder::ints(const std::vector<int64_t>& values) { return editor_.ints("ints", values); }

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
  auto outputs = editor_.append_like(std::move(entry), num_outputs);
  if (outputs) return *outputs;
  errors_.push_back(std::move(outputs.error()));
  return failed;
}

void Builder::output(ValueId id, const std::string& name) {
  if (id < 0) return;
  if (!name.empty()) editor_.new_value(id).name = editor_.value_name(name);
  editor_.graph().outputs.push_back(id);
}

const tensor::TensorType& Builder::type(ValueId id) const {
  static const tensor::TensorType none{DType::F32, {}, -1};
  return id < 0 ? none : editor_.new_value(id).type;
}

Result<Graph> Builder::finish() {
  if (!errors_.empty()) {
    Error first = errors_.front();
    first.others.assign(errors_.begin() + 1, errors_.end());
    return tl::unexpected<Error>(std::move(first));
  }
  TW_TRY_STATUS(verify(graph()));
  return graph();
}

}  // namespace tilewright::graph
