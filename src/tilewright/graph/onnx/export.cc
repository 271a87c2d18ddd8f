#include "tilewright/graph/onnx/export.h"

#include <fmt/format.h>
#include <tilewright_onnx.pb.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/base/output_file.h"
#include "tilewright/base/protobuf_wire.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/onnx/import_tensor.h"

namespace tilewright::graph {
namespace {

namespace onnx = tilewright_onnx;

constexpr int64_t kInlineBytes = 1 << 10;
constexpr int64_t kFileLimit = 2'000'000'000;  ///< the format ends at 2 GiB

struct OperatorVersion {
  const char* op;
  int64_t since;                    ///< first opset with the form the operator library uses
  const char* attribute = nullptr;  ///< the row counts only for nodes with this attribute
};
// Against opset 17. source: the ONNX operator changelog.
const OperatorVersion kNewerOperators[] = {
    {"AffineGrid", 20},
    {"AveragePool", 19},
    {"BitwiseAnd", 18},
    {"BitwiseNot", 18},
    {"BitwiseOr", 18},
    {"BitwiseXor", 18},
    {"Cast", 19, "saturate"},
    {"CastLike", 19, "saturate"},
    {"CenterCropPad", 18},
    {"Col2Im", 18},
    {"CumProd", 26},
    {"DequantizeLinear", 21, "block_size"},
    {"Gelu", 20},
    {"GridSample", 20},
    {"GroupNormalization", 21},
    {"LpPool", 18},
    {"Mish", 18},
    {"Pad", 18},
    {"QuantizeLinear", 19, "saturate"},
    {"QuantizeLinear", 21, "block_size"},
    {"QuantizeLinear", 21, "output_dtype"},
    {"RMSNormalization", 23},
    {"ReduceL1", 18},
    {"ReduceL2", 18},
    {"ReduceLogSum", 18},
    {"ReduceLogSumExp", 18},
    {"ReduceMax", 18},
    {"ReduceMean", 18},
    {"ReduceMin", 18},
    {"ReduceProd", 18},
    {"ReduceSumSquare", 18},
    {"Resize", 19},
    {"ScatterElements", 18, "reduction"},
    {"ScatterND", 18, "reduction"},
    {"Split", 18},
    {"Swish", 24},
};

int64_t lowest_opset(const Graph& graph) {
  int64_t opset = 17;
  for (const Node& node : graph.nodes)
    for (const OperatorVersion& row : kNewerOperators)
      if (node.domain.empty() && node.op == row.op &&
          (row.attribute == nullptr || node.attrs.has(row.attribute)))
        opset = std::max(opset, row.since);
  return opset;
}

/// source: ONNX release table (IR version of each opset).
int64_t ir_version(int64_t opset) { return opset >= 21 ? 10 : opset >= 19 ? 9 : 8; }

void set_tensor_header(onnx::TensorProto& tensor, const std::string& name, const Array& array) {
  tensor.set_name(name);
  tensor.set_data_type(onnx_of_dtype(array.dtype()));
  for (int64_t extent : array.shape()) tensor.add_dims(extent);
}

void set_attribute(onnx::AttributeProto& out, const tensor::AttrValue& value) {
  std::visit(Overloaded{[&](int64_t v) { out.set_type(2), out.set_i(v); },
                        [&](double v) { out.set_type(1), out.set_f(static_cast<float>(v)); },
                        [&](const std::string& v) { out.set_type(3), out.set_s(v); },
                        [&](const std::vector<int64_t>& v) {
                          out.set_type(7);
                          for (int64_t item : v) out.add_ints(item);
                        },
                        [&](const std::vector<double>& v) {
                          out.set_type(6);
                          for (double item : v) out.add_floats(static_cast<float>(item));
                        },
                        [&](const std::vector<std::string>& v) {
                          out.set_type(8);
                          for (const std::string& item : v) out.add_strings(item);
                        },
                        [&](const Array& v) {
                          out.set_type(4);
                          set_tensor_header(*out.mutable_t(), "", v);
                          out.mutable_t()->set_raw_data(v.data(), static_cast<size_t>(v.bytes()));
                        }},
             value);
}

void set_value_info(onnx::ValueInfoProto& out, const Value& value) {
  out.set_name(value.name);
  onnx::TypeProto::Tensor& type = *out.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_of_dtype(value.type.dtype));
  onnx::TensorShapeProto& shape = *type.mutable_shape();
  for (size_t axis = 0; axis < value.type.shape.size(); ++axis) {
    onnx::TensorShapeProto::Dimension& dim = *shape.add_dim();
    if (static_cast<int>(axis) == value.type.dynamic_axis) {
      dim.set_dim_param(value.name + "." + std::to_string(axis));
    } else {
      dim.set_dim_value(value.type.shape[axis]);
    }
  }
}

template <class Owner>
void add_metadata(Owner& owner, const std::map<std::string, std::string>& entries) {
  for (const auto& [key, text] : entries) {
    onnx::StringStringEntryProto& entry = *owner.add_metadata_props();
    entry.set_key(key);
    entry.set_value(text);
  }
}

/// The graph with what is checked in the place of the checks: the importer puts them in again, and
/// other tools have their own. One that is an output of the graph becomes an Identity.
Graph without_checks(Graph graph) {
  const std::vector<bool> output = is_output(graph);
  std::map<ValueId, ValueId> checked;
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.inputs)
      if (const auto it = checked.find(id); it != checked.end()) id = it->second;
    const bool check = node.domain == "tilewright" && node.op == "CheckRange";
    if (check && !output[static_cast<size_t>(node.outputs[0])]) {
      checked[node.outputs[0]] = node.inputs[0];
      continue;
    }
    if (check) node.domain = "", node.op = "Identity", node.attrs = {};
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

void add_node(onnx::GraphProto& out, const Graph& graph, const Node& node,
              const ExportOptions& options) {
  onnx::NodeProto& proto = *out.add_node();
  proto.set_name(node.name);
  proto.set_op_type(node.op);
  if (!node.domain.empty()) proto.set_domain(node.domain);
  const auto name_of = [&](ValueId id) {
    return id < 0 ? std::string() : graph.values[static_cast<size_t>(id)].name;
  };
  for (ValueId id : node.inputs) proto.add_input(name_of(id));
  for (ValueId id : node.outputs) proto.add_output(name_of(id));
  for (const auto& [key, value] : node.attrs.values) {
    onnx::AttributeProto& attribute = *proto.add_attribute();
    attribute.set_name(key);
    set_attribute(attribute, value);
  }
  if (const auto found = options.node_metadata.find(node.name);
      found != options.node_metadata.end())
    add_metadata(proto, found->second);
}

/// The model without its weights.
onnx::ModelProto skeleton(const Graph& graph, const ExportOptions& options) {
  onnx::ModelProto model;
  const int64_t opset = lowest_opset(graph);
  model.set_ir_version(ir_version(opset));
  model.set_producer_name("tilewright");
  onnx::OperatorSetIdProto& standard = *model.add_opset_import();
  standard.set_domain("");
  standard.set_version(opset);
  std::set<std::string> domains;
  for (const Node& node : graph.nodes)
    if (!node.domain.empty()) domains.insert(node.domain);
  for (const std::string& domain : domains) {
    onnx::OperatorSetIdProto& entry = *model.add_opset_import();
    entry.set_domain(domain);
    entry.set_version(1);
  }
  add_metadata(model, options.metadata);
  onnx::GraphProto& out = *model.mutable_graph();
  out.set_name(graph.name.empty() ? "graph" : graph.name);
  for (const Node& node : graph.nodes) add_node(out, graph, node, options);
  std::vector<bool> listed(graph.values.size(), false);
  for (ValueId id : graph.inputs) {
    set_value_info(*out.add_input(), graph.values[static_cast<size_t>(id)]);
    listed[static_cast<size_t>(id)] = true;
  }
  for (ValueId id : graph.outputs) {
    set_value_info(*out.add_output(), graph.values[static_cast<size_t>(id)]);
    listed[static_cast<size_t>(id)] = true;
  }
  for (const Node& node : graph.nodes)
    for (ValueId id : node.outputs)
      if (id >= 0 && !listed[static_cast<size_t>(id)])
        set_value_info(*out.add_value_info(), graph.values[static_cast<size_t>(id)]);
  return model;
}

std::vector<bool> used_constants(const Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  const auto mark = [&](ValueId id) {
    if (id >= 0 && graph.values[static_cast<size_t>(id)].constant)
      used[static_cast<size_t>(id)] = true;
  };
  for (const Node& node : graph.nodes)
    for (ValueId id : node.inputs) mark(id);
  for (ValueId id : graph.outputs) mark(id);
  return used;
}

/// One initializer in pieces: its header message and the raw bytes that follow it.
struct Weight {
  std::string head;  ///< serialised TensorProto without raw_data, plus raw_data's field header
  const Array* bytes = nullptr;  ///< null if the bytes are not in the file
  size_t size() const {
    return head.size() + (bytes == nullptr ? 0 : static_cast<size_t>(bytes->bytes()));
  }
};

Weight make_weight(const Graph& graph, ValueId id, const ExportOptions& options) {
  const Value& value = graph.values[static_cast<size_t>(id)];
  const Array& array = array_of(value);
  onnx::TensorProto tensor;
  set_tensor_header(tensor, value.name, array);
  Weight weight;
  std::optional<int64_t> offset;
  bool external =
      options.weights == ExportOptions::Weights::External && array.bytes() > kInlineBytes;
  if (external && options.place) {
    offset = options.place(id);
    external = offset.has_value();
  }
  if (external) {
    const auto add = [&](const char* key, const std::string& text) {
      onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(text);
    };
    add("location", options.external_file);
    if (offset) add("offset", std::to_string(*offset));
    add("length", std::to_string(array.bytes()));
    tensor.set_data_location(1);
  }
  weight.head = tensor.SerializeAsString();
  if (!external) {
    weight.head += field_header(9, static_cast<uint64_t>(array.bytes()));
    weight.bytes = &array;
  }
  return weight;
}

}  // namespace

std::string to_onnx(const Graph& given, const ExportOptions& options) {
  const Graph graph = without_checks(given);
  // The message is put together by hand so that weights are copied only once, into the result.
  onnx::ModelProto model = skeleton(graph, options);
  onnx::GraphProto body;
  body.Swap(model.mutable_graph());
  model.clear_graph();
  std::string graph_bytes = body.SerializeAsString();
  std::vector<Weight> weights;
  const std::vector<bool> used = used_constants(graph);
  uint64_t graph_size = graph_bytes.size();
  for (size_t v = 0; v < used.size(); ++v) {
    if (!used[v]) continue;
    weights.push_back(make_weight(graph, static_cast<ValueId>(v), options));
    graph_size += field_header(5, weights.back().size()).size() + weights.back().size();
  }
  std::string out = model.SerializeAsString();
  const std::string header = field_header(7, graph_size);
  out.reserve(out.size() + header.size() + graph_size);
  out += header;
  out += graph_bytes;
  for (const Weight& weight : weights) {
    out += field_header(5, weight.size());
    out += weight.head;
    if (weight.bytes != nullptr)
      out.append(static_cast<const char*>(weight.bytes->data()),
                 static_cast<size_t>(weight.bytes->bytes()));
  }
  return out;
}

Status save_onnx(const std::string& path, const Graph& graph, const ExportOptions& options) {
  int64_t total = 0;
  const std::vector<bool> used = used_constants(graph);
  for (size_t v = 0; v < used.size(); ++v)
    if (used[v]) total += array_of(graph.values[v]).bytes();
  if (options.weights == ExportOptions::Weights::External || total < kFileLimit)
    return write_file(path, to_onnx(graph, options));
  if (is_stream(path))
    return fail(ErrorKind::Usage,
                fmt::format("a model of {} bytes does not go into '{}'", total, path),
                "ONNX keeps so many weights in a second file beside the model", "name a file");
  constexpr int64_t kAlign = 4096;  // so that a mapped file gives aligned arrays
  std::map<ValueId, int64_t> offsets;
  std::string data;
  for (size_t v = 0; v < used.size(); ++v) {
    if (!used[v] || array_of(graph.values[v]).bytes() <= kInlineBytes) continue;
    data.resize((data.size() + kAlign - 1) / kAlign * kAlign);
    offsets[static_cast<ValueId>(v)] = static_cast<int64_t>(data.size());
    data.append(static_cast<const char*>(array_of(graph.values[v]).data()),
                static_cast<size_t>(array_of(graph.values[v]).bytes()));
  }
  ExportOptions external = options;
  external.weights = ExportOptions::Weights::External;
  external.external_file = std::filesystem::path(path).filename().string() + ".data";
  external.place = [&](ValueId id) -> std::optional<int64_t> {
    const auto found = offsets.find(id);
    if (found == offsets.end()) return std::nullopt;
    return found->second;
  };
  TW_TRY_STATUS(write_file(path + ".data", data));
  return write_file(path, to_onnx(graph, external));
}

}  // namespace tilewright::graph
