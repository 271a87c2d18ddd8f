// Nodes that compiled code cannot compute as they are, because the run decides extents: they become
// host functions (tensor/ops/dynamic.h), or work on as many rows as there can be.
//
// Example: scores [N] (N <= 4096), the run keeps K = min(1000, N): Shape(scores) is a host function
// whose result the importer follows (onnx/bounded_ints.h), so TopK has a bound of 1000 rows. The
// boxes of these rows go through a matrix product: PadToStatic makes 1000 rows of them, compiled
// code computes all, DynamicSlice cuts the K that count. A chain of such operators is cut only
// where somebody asks for the real rows. source: XLA's dynamic padder does the same (PadToStatic,
// SliceToDynamic).
#include "tilewright/graph/onnx/dynamic_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tilewright/tensor/value_limits.h"

namespace tilewright::graph {
namespace {

/// Neutral elements of the reductions whose result is the same with them, however many.
const char* neutral(const std::string& op) {
  static const std::map<std::string, const char*> kNeutral = {
      {"ReduceMax", "lowest"},  {"ReduceMin", "highest"},    {"ReduceSum", "zero"},
      {"ReduceProd", "one"},    {"ReduceL1", "zero"},        {"ReduceL2", "zero"},
      {"ReduceLogSum", "zero"}, {"ReduceSumSquare", "zero"}, {"ReduceLogSumExp", "lowest"},
      {"ArgMax", "lowest"},     {"ArgMin", "highest"},       {"Softmax", "lowest"},
      {"LogSoftmax", "lowest"}};
  const auto found = kNeutral.find(op);
  return found == kNeutral.end() ? nullptr : found->second;
}

/// Operators that compute each image of a batch, axis 0 of the first input, from that image alone.
bool image_by_image(const std::string& op) {
  static const std::set<std::string> kOps = {"Conv",
                                             "ConvTranspose",
                                             "MaxPool",
                                             "AveragePool",
                                             "LRN",
                                             "LpPool",
                                             "DepthToSpace",
                                             "SpaceToDepth",
                                             "GlobalLpPool",
                                             "GlobalMaxPool",
                                             "GlobalAveragePool",
                                             "InstanceNormalization",
                                             "GroupNormalization"};
  return kOps.contains(op);
}

}  // namespace

Extent DynamicNodes::extent_of(ValueId id) const {
  const auto it = id < 0 ? extents_.end() : extents_.find(id);
  if (it == extents_.end() || value(id).type.dynamic_axis < 0) return {};
  return it->second;
}

std::vector<Extent> DynamicNodes::extents_of(const std::vector<ValueId>& ids) const {
  std::vector<Extent> extents;
  for (ValueId id : ids) extents.push_back(extent_of(id));
  return extents;
}

BoundedInts DynamicNodes::shape_ints(ValueId id) const {
  const Extent extent = extent_of(id);
  BoundedInts ints;
  for (int64_t bound : shape(id)) ints.push_back({bound, true});
  if (extent.axis >= 0) {
    ints[static_cast<size_t>(extent.axis)].exact = false;
    ints[static_cast<size_t>(extent.axis)].extent = extent.id;
  }
  return ints;
}

DynamicNodes::Scaled DynamicNodes::scaled_of(int id) const {
  const auto found = scaled_.find(id);
  return found == scaled_.end() ? Scaled{id, 1, 1} : found->second;
}

int64_t DynamicNodes::axis_of(const Node& node, size_t rank, int64_t fallback) {
  const int64_t axis = node.attrs.get_int("axis", fallback);
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

std::optional<BoundedInts> DynamicNodes::ints_of(ValueId id) {
  if (id < 0 || is_float(value(id).type.dtype) || element_count(shape(id)) > kMostBoundedInts)
    return std::nullopt;
  if (!value(id).constant && !sink_.decided_by_run(id)) sink_.compute(id);
  if (value(id).constant) return exact_ints(*value(id).constant);
  const auto found = numbers_.find(id);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<Extent>> DynamicNodes::place(const tensor::OpCall& call, const Node& node,
                                                const std::vector<tensor::TensorType>& types) {
  return dynamic_extents(call, extents_of(node.inputs), types, next_extent_);
}

void DynamicNodes::note(const Node& node, const tensor::OpCall& call,
                        const std::vector<Extent>& extents, bool runtime) {
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i].axis >= 0) extents_[node.outputs[i]] = extents[i];
  if (node.domain.empty() && node.op == "NonZero") non_zeros_[node.inputs[0]] = node.outputs[0];
  if (!runtime || node.outputs.size() != 1) return;
  const DType dtype =
      value(node.outputs[0]).type.dtype;  // shapes are i64; sums of narrow types wrap
  if (dtype != DType::I64 && dtype != DType::I32 && dtype != DType::Bool) return;
  std::vector<std::optional<BoundedInts>> numbers;
  for (ValueId id : node.inputs) numbers.push_back(ints_of(id));
  auto known = derived_ints(call, numbers, shape(node.outputs[0]));
  const auto wraps = [&](const BoundedInt& i) {
    return dtype == DType::I32 && (i.most > INT32_MAX || i.most < INT32_MIN);
  };
  if (known && std::none_of(known->begin(), known->end(), wraps))
    numbers_[node.outputs[0]] = *std::move(known);
}

std::optional<Array> DynamicNodes::settled(ValueId id) const {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return std::nullopt;
  const BoundedInts& numbers = found->second;
  Array array(value(id).type.dtype, shape(id));
  if (static_cast<size_t>(array.size()) != numbers.size()) return std::nullopt;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!numbers[i].exact) return std::nullopt;
    array.set_int(static_cast<int64_t>(i), numbers[i].most);
  }
  return array;
}

int DynamicNodes::extent_named(const std::string& text) {
  const auto [place, made] = named_extents_.emplace(text, next_extent_);
  if (made) ++next_extent_;
  return place->second;
}

int DynamicNodes::scaled_extent(int id, int64_t numerator, int64_t denominator) {
  Scaled scaled = scaled_of(id);
  scaled.numerator *= numerator;
  scaled.denominator *= denominator;
  const int64_t common = std::gcd(scaled.numerator, scaled.denominator);
  scaled.numerator /= std::max<int64_t>(common, 1);
  scaled.denominator /= std::max<int64_t>(common, 1);
  if (scaled.numerator == 1 && scaled.denominator == 1) return scaled.of;
  const int made =
      extent_named(fmt::format("{} * {} / {}", scaled.of, scaled.numerator, scaled.denominator));
  scaled_[made] = scaled;
  return made;
}

ValueId DynamicNodes::add_list(const Node& node, const std::vector<int64_t>& values) {
  Array array(DType::I64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
  return sink_.add_constant(node.name + ".const", std::move(array));
}

Result<DynamicNodes::Values> DynamicNodes::add_host(const Node& node, const char* op, Values inputs,
                                                    Shape bound, Extent extent, int num_outputs,
                                                    AttrMap attrs) {
  Node host;
  host.domain = "tilewright";
  host.op = op;
  host.name = node.name;
  host.inputs = std::move(inputs);
  host.outputs.assign(static_cast<size_t>(num_outputs), -1);
  host.attrs.values = std::move(attrs);
  host.attrs.values["bound"] = std::vector<int64_t>(bound.begin(), bound.end());
  host.attrs.values["dynamic_axis"] = static_cast<int64_t>(extent.axis);
  const tensor::OpCall call = op_call(sink_.graph(), host);
  const std::vector<tensor::TensorType> types = TW_TRY(tensor::infer(call));
  return sink_.append(std::move(host), call, types, std::vector<Extent>(types.size(), extent));
}

Result<ValueId> DynamicNodes::add_part(const Node& of, const char* op, Values inputs,
                                       AttrMap attrs) {
  Node node;
  node.name = fmt::format("{}.{}", of.name, op);
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs.values = std::move(attrs);
  return TW_TRY(sink_.add(std::move(node), 1))[0];
}

Result<ValueId> DynamicNodes::to_static(const Node& node, ValueId id, const char* fill) {
  const Extent extent = extent_of(id);
  const auto found = static_of_.find(id);
  if (fill == nullptr && found != static_of_.end()) return found->second;
  const Shape bound = shape(id);
  const ValueId made =
      TW_TRY(add_host(node, "PadToStatic", {id}, bound, {}, 1,
                      {{"axis", static_cast<int64_t>(extent.axis)},
                       {"fill", std::string(fill == nullptr ? "zero" : fill)}}))[0];
  if (fill == nullptr) static_of_[id] = made;
  return made;
}

Result<ValueId> DynamicNodes::count_of(const Node& node, ValueId like) {
  const Extent extent = extent_of(like);
  if (const auto found = counts_.find(extent.id); found != counts_.end()) return found->second;
  const auto axis = static_cast<int64_t>(extent.axis);
  const ValueId count = TW_TRY(
      add_host(node, "DynamicShape", {like}, {1}, {}, 1, {{"start", axis}, {"end", axis + 1}}))[0];
  counts_[extent.id] = count;
  return count;
}

Result<DynamicNodes::Made> DynamicNodes::in_static(const Node& node, int num_outputs, ValueId like,
                                                   int axis, const char* fill) {
  const Extent extent = extent_of(like);
  Node whole = node;
  for (ValueId& input : whole.inputs)
    if (extent_of(input).axis >= 0) input = TW_TRY(to_static(node, input, fill));
  Values outputs = TW_TRY(sink_.add(whole, num_outputs));
  if (axis < 0) return outputs;
  const ValueId count = TW_TRY(count_of(node, like));
  for (ValueId& output : outputs) {
    const ValueId rows = output;
    const Shape bound = shape(rows);
    output = TW_TRY(add_host(node, "DynamicSlice",
                             {rows, add_list(node, {0}), count, add_list(node, {axis})}, bound,
                             {axis, extent.id}))[0];
    static_of_[output] = rows;
  }
  return outputs;
}

std::optional<int> DynamicNodes::plain_axis(const Node& node, int num_outputs) {
  const tensor::OpDef* op = tensor::find_op(node.domain, node.op);
  if (op == nullptr) return std::nullopt;
  for (int index : op->constant_inputs) {
    if (index >= static_cast<int>(node.inputs.size())) continue;
    const ValueId id = node.inputs[static_cast<size_t>(index)];
    if (id < 0) continue;
    sink_.compute(id);
    if (!value(id).constant) return std::nullopt;
  }
  Node whole = node;
  whole.outputs.assign(static_cast<size_t>(num_outputs), -1);
  const tensor::OpCall call = op_call(sink_.graph(), whole);
  const auto types = tensor::infer(call);
  if (!types) return std::nullopt;
  int unused = next_extent_;
  const auto extents = dynamic_extents(call, extents_of(node.inputs), *types, unused);
  if (!extents) return std::nullopt;
  return (*extents)[0].axis;
}

Result<DynamicNodes::Made> DynamicNodes::keep_static(const Node& node, int num_outputs) {
  ValueId like = -1;
  for (ValueId id : node.inputs) {
    if (extent_of(id).axis < 0) continue;
    if (!static_of_.contains(id)) return std::nullopt;
    like = id;
  }
  const tensor::OpDef* op = tensor::find_op(node.domain, node.op);
  if (like < 0 || op == nullptr || !op->host.empty()) return std::nullopt;
  const std::optional<int> axis = plain_axis(node, num_outputs);
  // Rows that there are not may hold anything: no place to look.
  if (!axis || !tensor::value_limits(op_call(sink_.graph(), node)).empty()) return std::nullopt;
  return in_static(node, num_outputs, like, *axis, nullptr);
}

/// The sum, divided by how many there are.
Result<DynamicNodes::Made> DynamicNodes::mean(const Node& node, int num_outputs) {
  Node sum = node;
  sum.op = "ReduceSum";
  const Made total = TW_TRY(reduce(sum, num_outputs));
  if (!total) return std::nullopt;
  const ValueId result = (*total)[0];
  int64_t others = 1;  // of the other axes that go
  for (size_t i = 0; i < shape(node.inputs[0]).size(); ++i)
    if (static_cast<int>(i) != extent_of(node.inputs[0]).axis) others *= shape(node.inputs[0])[i];
  others /= std::max<int64_t>(1, element_count(shape(result)));
  const ValueId count = TW_TRY(
      add_part(node, "Mul", {TW_TRY(count_of(node, node.inputs[0])), add_list(node, {others})}));
  const ValueId real = TW_TRY(add_part(node, "CastLike", {count, result}));
  const ValueId scalar = TW_TRY(add_part(node, "Squeeze", {real, add_list(node, {0})}));
  return Values{TW_TRY(add_part(node, "Div", {result, scalar}))};
}

/// Reductions: over the axis itself rows that change nothing are added; over others every row is by
/// itself.
Result<DynamicNodes::Made> DynamicNodes::reduce(const Node& node, int num_outputs) {
  const Extent extent = extent_of(node.inputs[0]);
  if (extent.axis < 0) return std::nullopt;
  const size_t rank = shape(node.inputs[0]).size();
  const bool one_axis = node.op == "ArgMax" || node.op == "ArgMin";
  const bool same_rank = node.op == "Softmax" || node.op == "LogSoftmax" || node.op == "Hardmax";
  std::vector<int64_t> axes = node.attrs.get_ints("axes");
  if (one_axis || same_rank) axes = {node.attrs.get_int("axis", one_axis ? 0 : -1)};
  if (node.inputs.size() > 1 && node.inputs[1] >= 0) {
    sink_.compute(node.inputs[1]);
    const auto& known = value(node.inputs[1]).constant;
    if (!known) return std::nullopt;
    axes = known->to_ints();
  }
  if (axes.empty() && node.attrs.get_int("noop_with_empty_axes", 0) != 0) return std::nullopt;
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  bool itself = false;
  int before = 0;
  for (int64_t axis : axes) {
    const int64_t at = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
    itself = itself || at == extent.axis;
    if (at < extent.axis) ++before;
  }
  const bool keeps = same_rank || node.attrs.get_int("keepdims", 1) != 0;
  const int kept = keeps ? extent.axis : extent.axis - before;
  if (!itself) return in_static(node, num_outputs, node.inputs[0], kept, nullptr);
  if (node.op == "ReduceMean") return mean(node, num_outputs);
  const char* fill = neutral(node.op);
  if (fill == nullptr || node.attrs.get_int("select_last_index", 0) != 0) return std::nullopt;
  return in_static(node, num_outputs, node.inputs[0], same_rank ? extent.axis : -1, fill);
}

/// Whether a Pad adds nothing along `axis`, or a Resize does not scale it.
bool DynamicNodes::keeps_axis(const Node& node, int axis, int rank) {
  const size_t operand = node.op == "Pad" ? 1 : 2;
  const auto given = [&](size_t i) { return i < node.inputs.size() && node.inputs[i] >= 0; };
  if (!given(operand) || given(3) || node.attrs.has("axes")) return false;
  sink_.compute(node.inputs[operand]);
  const std::optional<Array>& known = value(node.inputs[operand]).constant;
  const auto count = static_cast<int64_t>(rank) * (node.op == "Pad" ? 2 : 1);
  if (!known || known->size() != count) return false;
  const std::vector<double> numbers = known->to_doubles();
  const auto at = static_cast<size_t>(axis);
  if (node.op == "Pad") return numbers[at] == 0 && numbers[at + static_cast<size_t>(rank)] == 0;
  return numbers[at] == 1;
}

/// Operators whose rows along the axis have nothing to do with each other.
Result<DynamicNodes::Made> DynamicNodes::row_by_row(const Node& node, int num_outputs) {
  const auto dynamic = [&](size_t i) {
    return i < node.inputs.size() && extent_of(node.inputs[i]).axis >= 0;
  };
  const size_t first = dynamic(0) ? 0 : 1;
  for (size_t i = first + 1; i < node.inputs.size(); ++i)
    if (dynamic(i) &&
        !(node.op == "RoiAlign" && extent_of(node.inputs[i]) == extent_of(node.inputs[first])))
      return std::nullopt;
  if (!dynamic(first)) return std::nullopt;
  const ValueId like = node.inputs[first];
  const int axis = extent_of(like).axis, rank = static_cast<int>(shape(like).size());
  if (node.op == "RoiAlign" && first == 1 && axis == 0)
    return in_static(node, num_outputs, like, 0, "zero");  // rows of indices, too
  if (first != 0) return std::nullopt;
  if (image_by_image(node.op) && axis == 0) return in_static(node, num_outputs, like, 0, nullptr);
  if (node.op == "Gemm" && axis == 0 && node.attrs.get_int("transA", 0) == 0) {
    const bool bias = node.inputs.size() < 3 || node.inputs[2] < 0 ||
                      shape(node.inputs[2]).size() < 2 || shape(node.inputs[2])[0] == 1;
    if (bias) return in_static(node, num_outputs, like, 0, nullptr);
  }
  if (node.op == "MatMul") {
    const int by = static_cast<int>(shape(node.inputs[1]).size());
    const bool row = axis == rank - 2, batch = axis < rank - 2 && by <= 2;
    if (row || batch)
      return in_static(node, num_outputs, like, axis + std::max(0, by - rank), nullptr);
  }
  if ((node.op == "Pad" || node.op == "Resize") && keeps_axis(node, axis, rank))
    return in_static(node, num_outputs, like, axis, nullptr);
  if (node.op == "LayerNormalization" && axis < axis_of(node, static_cast<size_t>(rank), -1))
    return in_static(node, num_outputs, like, axis, nullptr);
  return std::nullopt;
}

Result<DynamicNodes::Made> DynamicNodes::add(const Node& node, int num_outputs) {
  if (!node.domain.empty() || node.inputs.empty()) return std::nullopt;
  static const std::map<std::string, Rule> kRules = {
      {"Shape", &DynamicNodes::shape_of},    {"Size", &DynamicNodes::shape_of},
      {"Reshape", &DynamicNodes::reshape},   {"Flatten", &DynamicNodes::flatten},
      {"Expand", &DynamicNodes::expand},     {"ConstantOfShape", &DynamicNodes::constant_of_shape},
      {"Range", &DynamicNodes::range},       {"Slice", &DynamicNodes::slice},
      {"Gather", &DynamicNodes::gather},     {"GatherND", &DynamicNodes::gather_nd},
      {"Concat", &DynamicNodes::concat},     {"TopK", &DynamicNodes::top_k},
      {"ReduceMean", &DynamicNodes::reduce}, {"Hardmax", &DynamicNodes::reduce}};
  if (const auto same = non_zeros_.find(node.inputs[0]);
      node.op == "NonZero" && same != non_zeros_.end())
    return Values{same->second};
  const auto found = kRules.find(node.op);
  const Rule rule = found != kRules.end()         ? found->second
                    : neutral(node.op) != nullptr ? &DynamicNodes::reduce
                                                  : &DynamicNodes::row_by_row;
  if (Made made = TW_TRY((this->*rule)(node, num_outputs))) return made;
  return keep_static(node, num_outputs);
}

Result<ValueId> DynamicNodes::choose(const std::string& name, ValueId condition, ValueId yes,
                                     ValueId no) {
  const tensor::TensorType &a = value(yes).type, &b = value(no).type;
  const auto refuse = [&](const char* what) {
    return fail(ErrorKind::Unsupported, fmt::format("the branches of this If {}", what),
                fmt::format("{} and {}, and the run decides which", to_string(a), to_string(b)));
  };
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return refuse("give different types");
  const Extent first = extent_of(yes), second = extent_of(no);
  Shape bound = a.shape;
  Extent extent = first == second ? first : Extent{};
  for (size_t i = 0; i < bound.size(); ++i) {
    const auto axis = static_cast<int>(i);
    const bool same = a.shape[i] == b.shape[i] && first.axis != axis && second.axis != axis;
    bound[i] = std::max(bound[i], b.shape[i]);
    if (same || extent.axis == axis) continue;
    if (extent.axis >= 0) return refuse("differ in two extents");
    extent = {axis, next_extent_++};
  }
  Node select;
  select.name = name;
  return TW_TRY(
      add_host(select, "DynamicSelect", {condition, yes, no}, std::move(bound), extent))[0];
}

}  // namespace tilewright::graph
