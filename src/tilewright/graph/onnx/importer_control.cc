// Nodes with graphs of their own. Of an If whose condition is known only the branch taken is read;
// the body of a Loop or Scan that runs a known number of times is imported once for each time, so
// the graph has neither: a package is a fixed list of steps.
//
// Example: a Scan over x of [3, 4] with the body `s' = s + x_t` becomes
//   s1 = s + x[0], s2 = s1 + x[1], s3 = s2 + x[2].
// Nodes of iteration 1 of the node `loop` are called `loop/1/...`.
// source: the ONNX operator specification, If, Loop and Scan.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tilewright/base/counted.h"
#include "tilewright/graph/onnx/importer.h"

namespace tilewright::graph {
namespace {

namespace onnx = tilewright_onnx;

/// A Scan before opset 9, which has an axis for the batch in front of all others.
constexpr int64_t kScanWithoutBatch = 9;

}  // namespace

/// Of the scanned inputs and outputs of a Scan, one each.
struct Importer::ScanAxes {
  size_t states = 0;
  std::vector<int64_t> in, in_reversed, out, out_reversed;
};

Importer::Structural Importer::structural(const Node& node) const {
  static const std::map<std::string, Structural> table = {
      {"If", &Importer::import_if},
      {"Loop", &Importer::import_loop},
      {"Scan", &Importer::import_scan},
      {"SequenceConstruct", &Importer::sequence_construct},
      {"SequenceEmpty", &Importer::sequence_empty},
      {"SequenceAt", &Importer::sequence_at},
      {"SequenceLength", &Importer::sequence_length},
      {"SequenceInsert", &Importer::sequence_insert},
      {"SequenceErase", &Importer::sequence_erase},
      {"SplitToSequence", &Importer::split_to_sequence},
      {"ConcatFromSequence", &Importer::concat_from_sequence},
      {"SequenceMap", &Importer::sequence_map},
      {"Optional", &Importer::optional_value},
      {"OptionalGetElement", &Importer::optional_get_element},
      {"OptionalHasElement", &Importer::optional_has_element}};
  if (!node.domain.empty()) return nullptr;
  if (node.op == "Identity" && node.inputs.size() == 1 && node.inputs[0] <= kSequence)
    return &Importer::optional_value;
  const auto found = table.find(node.op);
  return found == table.end() ? nullptr : found->second;
}

void Importer::import_structural(Structural import, const Call& call) {
  poison_outputs(call.proto, call.body);
  const auto made_before = static_cast<ValueId>(graph_.values.size());
  const int64_t nodes_before = node_count_;
  Result<Values> outputs = (this->*import)(call);
  if (!outputs) {
    node_count_ = nodes_before;  // what is refused leaves room for others
    return report(std::move(outputs.error()), call.where);
  }
  if (static_cast<int>(outputs->size()) < call.proto.output_size())
    return report(ErrorKind::Invalid,
                  fmt::format("{} yields {}, the node has {}", call.node.op,
                              counted(static_cast<int64_t>(outputs->size()), "value"),
                              counted(call.proto.output_size(), "output")),
                  call.where);
  define_outputs(call.proto, call.body, *outputs);
  for (int i = 0; i < call.proto.output_size(); ++i) {
    const ValueId id = (*outputs)[static_cast<size_t>(i)];
    if (id < made_before || call.proto.output(i).empty()) continue;
    std::string& name = graph_.values[static_cast<size_t>(id)].name;
    // `#`: nobody has named it yet.
    if (name.starts_with('#'))
      name = names_.value(call.body.prefix + printable(call.proto.output(i)));
  }
}

Result<Subgraph> Importer::open_subgraph(const Call& call, const std::string& attribute) {
  if (call.body.depth >= kMaxDepth)
    return fail(ErrorKind::Invalid,
                fmt::format("graphs are within each other more than {} levels deep", kMaxDepth));
  for (const onnx::AttributeProto& written : call.proto.attribute()) {
    if (written.name() != attribute || !written.has_g()) continue;
    Subgraph subgraph{written.g(), attribute, {}, names_read(written.g())};
    Body inner;
    inner.prefix = call.node.name + "/";
    inner.path = fmt::format("{} of {}", attribute, call.where);
    inner.read = subgraph.read;
    read_initializers(subgraph.graph, inner);
    subgraph.weights = std::move(inner.scope.values);
    return subgraph;
  }
  return fail(ErrorKind::Invalid, fmt::format("{} has no {}", call.node.op, attribute));
}

Importer::Values Importer::run_subgraph(const Subgraph& subgraph, const Call& call,
                                        const std::string& label, const Values& given) {
  const size_t errors_before = errors_.size();
  Body inner;
  inner.scope.parent = &call.body.scope;
  inner.scope.values = subgraph.weights;
  for (size_t i = 0; i < given.size(); ++i)
    inner.scope.values[subgraph.graph.input(static_cast<int>(i)).name()] = given[i];
  inner.opsets = call.body.opsets;
  inner.arguments = call.body.arguments;
  inner.calls = call.body.calls;
  inner.prefix = call.node.name + "/" + (label.empty() ? "" : label + "/");
  inner.path = fmt::format("{}{} of {}", label.empty() ? "" : "iteration " + label + " in ",
                           subgraph.name, call.where);
  inner.depth = call.body.depth + 1;
  inner.read = subgraph.read;
  import_nodes(subgraph.graph.node(), inner);
  Values outputs;
  for (const auto& output : subgraph.graph.output()) {
    const ValueId* id = inner.scope.find(output.name());
    if (id == nullptr)
      report(ErrorKind::Invalid,
             fmt::format("output '{}' is never produced", printable(output.name())), inner.path);
    outputs.push_back(id == nullptr ? kUnknown : *id);
  }
  if (errors_.size() > errors_before) std::fill(outputs.begin(), outputs.end(), kUnknown);
  return outputs;
}

Status Importer::count_iteration(const Call& call, int64_t done, const std::string& of) {
  if (++node_count_ <= kMaxUnrolled) return {};
  return fail(
      ErrorKind::Unsupported,
      fmt::format("the model with this {} unrolled is too large", call.node.op),
      fmt::format("after {} of {} iterations it has more than {} nodes", done, of, kMaxUnrolled),
      "export the model with fewer iterations, or compile the body as a model of its own "
      "and run it in a loop");
}

Result<Array> Importer::known_value(ValueId id, const std::string& what) {
  if (id < 0) return fail(ErrorKind::Invalid, what + " is no tensor");
  Status known = force(id);
  const auto& values = graph_.values;
  const auto at = static_cast<size_t>(id);
  if (known && !values[at].constant && bind_if_offered(id)) known = force(id);
  if (known && values[at].constant) return *values[at].constant;
  return fail(ErrorKind::Unsupported, what + " is known only at run time",
              known ? "it depends on " + inputs_behind(id) : known.error().what,
              "--const NAME=@FILE.npy binds that input, if its value never changes");
}

Result<int64_t> Importer::known_scalar(ValueId id, const std::string& what) {
  const Shape& shape = id < 0 ? Shape{} : graph_.values[static_cast<size_t>(id)].type.shape;
  if (element_count(shape) != 1)
    return fail(ErrorKind::Invalid, what + " is not a single value",
                fmt::format("its shape is {}", to_string(shape)));
  const Array value = TW_TRY(known_value(id, what));
  return is_float(value.dtype()) ? static_cast<int64_t>(value.get(0) != 0) : value.get_int(0);
}

Result<ValueId> Importer::add_part(const Call& call, const char* op, Values inputs, AttrMap attrs) {
  for (ValueId id : inputs)
    if (id < 0)
      return fail(
          ErrorKind::Invalid,
          fmt::format("{} needs tensors here, a sequence or nothing is given", call.node.op));
  Node node;
  node.name = call.node.name + "/" + op;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs.values = std::move(attrs);
  return TW_TRY(add(std::move(node), 1))[0];
}

ValueId Importer::add_ints(const Call& call, const std::vector<int64_t>& values) {
  Array array(DType::I64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
  return add_constant(call.node.name + ".const", std::move(array));
}

ValueId Importer::add_scalar(const Call& call, DType dtype, int64_t value) {
  Array array(dtype, {});
  array.set_int(0, value);
  return add_constant(call.node.name + ".const", std::move(array));
}

Result<ValueId> Importer::slice_of(const Call& call, ValueId id, int64_t axis, int64_t index) {
  const ValueId axes = add_ints(call, {axis});
  const ValueId slice = TW_TRY(
      add_part(call, "Slice", {id, add_ints(call, {index}), add_ints(call, {index + 1}), axes}));
  return add_part(call, "Squeeze", {slice, axes});
}

Result<ValueId> Importer::stacked(const Call& call, const Values& parts, int64_t axis) {
  const ValueId axes = add_ints(call, {axis});
  Values slices;
  for (ValueId part : parts) slices.push_back(TW_TRY(add_part(call, "Unsqueeze", {part, axes})));
  if (slices.size() == 1) return slices[0];
  return add_part(call, "Concat", std::move(slices), {{"axis", axis}});
}

namespace {

bool all_known(const std::vector<ValueId>& ids, ValueId unknown) {
  return std::find(ids.begin(), ids.end(), unknown) == ids.end();
}

/// The value of a scan output of a loop that never runs: no element, of the type that the body
/// declares. errors: Unsupported.
Result<Array> nothing_scanned(const onnx::ValueInfoProto& declared, int64_t axis) {
  const auto& type = declared.type().tensor_type();
  const auto dtype = dtype_of_onnx(type.elem_type());
  Shape shape;
  bool known = dtype && type.has_shape();
  for (const auto& dim : type.shape().dim()) {
    known = known && dim.has_dim_value() && dim.dim_value() >= 0;
    shape.push_back(dim.dim_value());
  }
  const auto rank = static_cast<int64_t>(shape.size()) + 1;
  if (!known)
    return fail(ErrorKind::Unsupported,
                fmt::format("scan output '{}' has no known type", printable(declared.name())),
                "the body never runs, and does not declare it either",
                "declare its type and shape in the body, or export the model without this loop");
  if (axis < -rank || axis >= rank)
    return fail(ErrorKind::Invalid, fmt::format("axis {} of a scan output of rank {}", axis, rank));
  shape.insert(shape.begin() + (axis < 0 ? axis + rank : axis), 0);
  return Array(*dtype, shape);
}

/// Whether the body of a Loop has its iteration number or condition as a vector of one element.
Shape shape_of_counter(const onnx::GraphProto& body, int input) {
  const auto& type = body.input(input).type().tensor_type();
  return type.has_shape() && type.shape().dim_size() == 1 ? Shape{1} : Shape{};
}

}  // namespace

Result<Importer::Values> Importer::import_loop(const Call& call) {
  const Subgraph body = TW_TRY(open_subgraph(call, "body"));
  Values inputs = call.node.inputs;
  inputs.resize(static_cast<size_t>(std::max(2, call.proto.input_size())), -1);
  const size_t carried = inputs.size() - 2;
  const auto yielded = static_cast<size_t>(body.graph.output_size());
  if (static_cast<size_t>(body.graph.input_size()) != carried + 2 || yielded < carried + 1)
    return fail(ErrorKind::Invalid, "the body of this Loop does not fit its inputs",
                fmt::format("it has {} and {} for {}", counted(body.graph.input_size(), "input"),
                            counted(body.graph.output_size(), "output"),
                            counted(static_cast<int64_t>(carried), "carried value")));
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (inputs[0] != -1)
    trips = TW_TRY(known_scalar(inputs[0], "the number of iterations of this Loop"));
  bool go = true;
  if (inputs[1] != -1) go = TW_TRY(known_scalar(inputs[1], "the condition of this Loop")) != 0;
  const std::string of = inputs[0] == -1 ? "an unknown number of" : std::to_string(trips);
  Values state(inputs.begin() + 2, inputs.end());
  std::vector<Values> scanned(yielded - carried - 1);
  for (int64_t i = 0; i < trips && go; ++i) {
    TW_TRY_STATUS(count_iteration(call, i, of));
    Array count(DType::I64, shape_of_counter(body.graph, 0));
    count.set_int(0, i);
    Array goes_on(DType::Bool, shape_of_counter(body.graph, 1));
    goes_on.set_int(0, 1);
    Values given = {add_constant(call.node.name + ".iteration", std::move(count)),
                    add_constant(call.node.name + ".condition", std::move(goes_on))};
    given.insert(given.end(), state.begin(), state.end());
    const Values made = run_subgraph(body, call, std::to_string(i), given);
    if (!all_known(made, kUnknown)) return Values(yielded - 1, kUnknown);
    const auto scans = made.begin() + 1 + static_cast<std::ptrdiff_t>(carried);
    state.assign(made.begin() + 1, scans);
    for (size_t s = 0; s < scanned.size(); ++s)
      scanned[s].push_back(scans[static_cast<std::ptrdiff_t>(s)]);
    if (i + 1 < trips)
      go =
          TW_TRY(known_scalar(
              made[0], fmt::format("the condition that iteration {} of this Loop yields", i))) != 0;
  }
  Values outputs = std::move(state);
  for (size_t s = 0; s < scanned.size(); ++s) {
    const auto& declared = body.graph.output(static_cast<int>(1 + carried + s));
    outputs.push_back(scanned[s].empty() ? add_constant(call.node.name + ".nothing",
                                                        TW_TRY(nothing_scanned(declared, 0)))
                                         : TW_TRY(stacked(call, scanned[s], 0)));
  }
  return outputs;
}

Result<Importer::Values> Importer::scan(const Call& call, const Subgraph& body,
                                        const std::string& label, const Values& inputs,
                                        const ScanAxes& axes) {
  Values state(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(axes.states));
  int64_t trips = -1;
  for (size_t i = 0; i < axes.in.size(); ++i) {
    const ValueId id = inputs[axes.states + i];
    const tensor::TensorType& type = graph_.values[static_cast<size_t>(id)].type;
    const auto rank = static_cast<int64_t>(type.shape.size());
    const int64_t axis = axes.in[i] < 0 ? axes.in[i] + rank : axes.in[i];
    if (axis < 0 || axis >= rank)
      return fail(ErrorKind::Invalid, fmt::format("this Scan takes slices along axis {} of {}",
                                                  axes.in[i], to_string(type)));
    if (type.dynamic_axis == axis)
      return fail(ErrorKind::Unsupported, "how often this Scan runs is known only at run time",
                  "it depends on " + inputs_behind(id));
    const int64_t extent = type.shape[static_cast<size_t>(axis)];
    if (trips >= 0 && trips != extent)
      return fail(ErrorKind::Invalid, "the scanned inputs of this Scan differ in length",
                  fmt::format("{} and {}", trips, extent));
    trips = extent;
  }
  std::vector<Values> scanned(axes.out.size());
  for (int64_t t = 0; t < trips; ++t) {
    TW_TRY_STATUS(count_iteration(call, t, std::to_string(trips)));
    Values given = state;
    for (size_t i = 0; i < axes.in.size(); ++i)
      given.push_back(TW_TRY(slice_of(call, inputs[axes.states + i], axes.in[i],
                                      axes.in_reversed[i] != 0 ? trips - 1 - t : t)));
    const Values made = run_subgraph(body, call, label + std::to_string(t), given);
    if (!all_known(made, kUnknown)) return Values(made.size(), kUnknown);
    const auto scans = made.begin() + static_cast<std::ptrdiff_t>(axes.states);
    state.assign(made.begin(), scans);
    for (size_t s = 0; s < scanned.size(); ++s)
      scanned[s].push_back(scans[static_cast<std::ptrdiff_t>(s)]);
  }
  for (size_t s = 0; s < scanned.size(); ++s) {
    if (axes.out_reversed[s] != 0) std::reverse(scanned[s].begin(), scanned[s].end());
    const auto& declared = body.graph.output(static_cast<int>(axes.states + s));
    state.push_back(scanned[s].empty()
                        ? add_constant(call.node.name + ".nothing",
                                       TW_TRY(nothing_scanned(declared, axes.out[s])))
                        : TW_TRY(stacked(call, scanned[s], axes.out[s])));
  }
  return state;
}

Result<Importer::Values> Importer::import_scan(const Call& call) {
  const Subgraph body = TW_TRY(open_subgraph(call, "body"));
  const bool batched = call.body.opsets.at("") < kScanWithoutBatch;
  Values inputs = call.node.inputs;
  if (batched && !inputs.empty()) {
    if (inputs[0] != -1)
      return fail(ErrorKind::Unsupported, "a Scan with lengths of its sequences is not supported",
                  {}, "export the model with opset 9 or newer");
    inputs.erase(inputs.begin());
  }
  const tensor::Attrs& attrs = call.node.attrs;
  const int64_t scans = attrs.get_int("num_scan_inputs", 0);
  const auto count = static_cast<int64_t>(inputs.size());
  ScanAxes axes;
  if (scans >= 1 && scans <= count) axes.states = static_cast<size_t>(count - scans);
  const int64_t yields = body.graph.output_size() - static_cast<int64_t>(axes.states);
  if (scans < 1 || scans > count || body.graph.input_size() != count || yields < 0)
    return fail(
        ErrorKind::Invalid, "the body of this Scan does not fit its inputs",
        fmt::format("it has {} and {}, the Scan {}, {} of them scanned",
                    counted(body.graph.input_size(), "input"),
                    counted(body.graph.output_size(), "output"), counted(count, "input"), scans));
  for (ValueId id : inputs)
    if (id < 0) return fail(ErrorKind::Invalid, "an input of this Scan is no tensor");
  const auto list = [&](const char* key, int64_t length) {
    std::vector<int64_t> given = attrs.get_ints(key);
    given.resize(static_cast<size_t>(length), 0);
    return given;
  };
  axes.in = list("scan_input_axes", scans);
  axes.in_reversed = list(batched ? "directions" : "scan_input_directions", scans);
  axes.out = list("scan_output_axes", yields);
  axes.out_reversed = list("scan_output_directions", yields);
  if (!batched) return scan(call, body, "", inputs, axes);
  std::vector<Values> examples(static_cast<size_t>(body.graph.output_size()));
  const Shape shape = graph_.values[static_cast<size_t>(inputs[0])].type.shape;
  const int64_t batch = shape.empty() ? 0 : shape[0];
  for (int64_t b = 0; b < batch; ++b) {
    Values one;
    for (ValueId id : inputs) one.push_back(TW_TRY(slice_of(call, id, 0, b)));
    const Values made = TW_TRY(scan(call, body, fmt::format("{}.", b), one, axes));
    if (!all_known(made, kUnknown)) return made;
    for (size_t i = 0; i < made.size(); ++i) examples[i].push_back(made[i]);
  }
  Values outputs;
  for (const Values& parts : examples) {
    if (parts.empty()) return fail(ErrorKind::Invalid, "this Scan has no example in its batch");
    outputs.push_back(TW_TRY(stacked(call, parts, 0)));
  }
  return outputs;
}

}  // namespace tilewright::graph
