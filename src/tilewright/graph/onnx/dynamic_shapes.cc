// Operators that make shapes of their own, where the run decides the extents: which axis of the
// result that is, its bound, and which other values have the same extent.
//
// Example: scores [N, 90] to [-1] has 90 N elements, boxes [N, 360] to [-1, 4] as many rows: both
// get the same extent, "N * 90 / 1", so they can be compared element by element later.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tilewright/graph/onnx/dynamic_nodes.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::graph {
namespace {

tl::unexpected<Error> refuse_extents(const Node& node, std::string why) {
  return fail(ErrorKind::Unsupported,
              fmt::format("{} has extents that are known only at run time", node.op),
              std::move(why));
}

constexpr const char* kTwoAxes = "its result would have two such axes";
constexpr const char* kNoBound = "nobody can tell how large they may be";

int64_t ceil_of(int64_t a, int64_t b) { return a <= 0 ? 0 : (a - 1) / b + 1; }

}  // namespace

Result<DynamicNodes::Made> DynamicNodes::shape_of(const Node& node, int num_outputs) {
  if (extent_of(node.inputs[0]).axis < 0) return std::nullopt;
  if (node.op == "Size") {
    const ValueId extents = TW_TRY(add_part(node, "Shape", {node.inputs[0]}));
    return Values{TW_TRY(add_part(node, "ReduceProd", {extents}, {{"keepdims", int64_t{0}}}))};
  }
  const BoundedInts all = shape_ints(node.inputs[0]);
  const auto rank = static_cast<int64_t>(all.size());
  const auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t start = place(node.attrs.get_int("start", 0));
  const int64_t end = std::max(start, place(node.attrs.get_int("end", rank)));
  const Values made = TW_TRY(add_host(node, "DynamicShape", {node.inputs[0]}, {end - start}, {},
                                      num_outputs, {{"start", start}, {"end", end}}));
  numbers_[made[0]] = BoundedInts(all.begin() + start, all.begin() + end);
  return made;
}

/// What a Reshape asks for, element by element.
struct DynamicNodes::Asked {
  Shape bound;             ///< -1: what is left
  Extent extent;           ///< of the axis that the run decides
  size_t open = SIZE_MAX;  ///< the axis of a -1
};

Result<DynamicNodes::Asked> DynamicNodes::asked_shape(const Node& node,
                                                      const BoundedInts& numbers) const {
  const BoundedInts from = shape_ints(node.inputs[0]);
  const bool zero_is_zero = node.attrs.get_int("allowzero", 0) != 0;
  Asked asked;
  for (size_t i = 0; i < numbers.size(); ++i) {
    BoundedInt number = numbers[i];
    if (number.exact && number.most == 0 && !zero_is_zero && i < from.size()) number = from[i];
    asked.bound.push_back(number.most);
    if (number.exact && number.most < 0) {
      if (number.most != -1 || asked.open != SIZE_MAX)
        return refuse_extents(node, "its shape has an extent below 0 that is not one -1");
      asked.open = i;
    }
    if (number.exact) continue;
    if (number.extent < 0) return refuse_extents(node, kNoBound);
    if (asked.extent.axis >= 0) return refuse_extents(node, kTwoAxes);
    asked.extent = {static_cast<int>(i), number.extent};
  }
  return asked;
}

/// What the -1 stands for.
Status DynamicNodes::fill_open(const Node& node, Asked& asked) {
  const Extent in = extent_of(node.inputs[0]);
  const Shape from = shape(node.inputs[0]);
  int64_t rows = 1, others = 1;  // elements for each step along the axis, before and after
  for (size_t i = 0; i < from.size(); ++i)
    if (static_cast<int>(i) != in.axis) rows *= from[i];
  for (size_t i = 0; i < asked.bound.size(); ++i)
    if (i != asked.open && static_cast<int>(i) != asked.extent.axis) others *= asked.bound[i];
  int64_t& open = asked.bound[asked.open];
  if (others == 0) return refuse_extents(node, "the new shape is empty");
  if (asked.extent.axis >= 0) {
    // The axis may count in other units than before: 90 N of [N, 90] back to N rows.
    const Scaled old = scaled_of(in.id), now = scaled_of(asked.extent.id);
    const int64_t of = rows * old.numerator * now.denominator;
    const int64_t by = others * old.denominator * now.numerator;
    if (in.axis < 0 || old.of != now.of || by == 0 || of % by != 0)
      return refuse_extents(node, kTwoAxes);
    open = of / by;
    return {};
  }
  if (in.axis < 0) {
    open = rows / others;
    return {};
  }
  const int64_t common = std::max<int64_t>(1, std::gcd(rows, others));
  asked.extent = {static_cast<int>(asked.open),
                  scaled_extent(in.id, std::max<int64_t>(1, rows / common), others / common)};
  open = from[static_cast<size_t>(in.axis)] * rows / others;
  return {};
}

Result<DynamicNodes::Made> DynamicNodes::flatten(const Node& node, int num_outputs) {
  const Extent in = extent_of(node.inputs[0]);
  if (in.axis < 0 || plain_axis(node, num_outputs)) return std::nullopt;
  const Shape from = shape(node.inputs[0]);
  const int64_t split = node.attrs.get_int("axis", 1);
  const auto at = split < 0 ? split + static_cast<int64_t>(from.size()) : split;
  const auto product = [](auto first, auto last) {
    return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
  };
  const ValueId asked = add_list(
      node, in.axis < at ? std::vector<int64_t>{-1, product(from.begin() + at, from.end())}
                         : std::vector<int64_t>{product(from.begin(), from.begin() + at), -1});
  return Values{TW_TRY(add_part(node, "Reshape", {node.inputs[0], asked}))};
}

Result<DynamicNodes::Made> DynamicNodes::reshape(const Node& node, int num_outputs) {
  const ValueId x = node.inputs[0];
  const Extent in = extent_of(x);
  if (node.inputs.size() != 2) return std::nullopt;
  const std::optional<BoundedInts> numbers = ints_of(node.inputs[1]);
  const bool known = value(node.inputs[1]).constant.has_value();
  if (!numbers || (known && (in.axis < 0 || plain_axis(node, num_outputs)))) return std::nullopt;
  Asked asked = TW_TRY(asked_shape(node, *numbers));
  if (asked.open != SIZE_MAX) TW_TRY_STATUS(fill_open(node, asked));
  if (asked.extent.axis < 0) return std::nullopt;
  if (!known && in.axis >= 0) {  // a view, if the axis stays where it is
    Node plain = node;
    Shape asked_now = asked.bound;
    asked_now[static_cast<size_t>(asked.extent.axis)] = -1;
    plain.inputs[1] = add_list(node, asked_now);
    plain.attrs = {};
    if (asked.extent.id == in.id && plain_axis(plain, num_outputs) == asked.extent.axis)
      return TW_TRY(sink_.add(std::move(plain), num_outputs));
  }
  return TW_TRY(add_host(node, "DynamicReshape", {x, node.inputs[1]}, asked.bound, asked.extent,
                         num_outputs, {{"allowzero", node.attrs.get_int("allowzero", 0)}}));
}

Result<DynamicNodes::Made> DynamicNodes::expand(const Node& node, int num_outputs) {
  if (node.inputs.size() != 2) return std::nullopt;
  const Extent in = extent_of(node.inputs[0]);
  const std::optional<BoundedInts> numbers = ints_of(node.inputs[1]);
  const bool known = value(node.inputs[1]).constant.has_value();
  if (!numbers || (known && in.axis < 0)) return std::nullopt;
  const BoundedInts from = shape_ints(node.inputs[0]);
  const size_t rank = std::max(from.size(), numbers->size());
  Shape bound(rank, 1);
  Extent extent;
  for (size_t i = 0; i < rank; ++i) {
    const size_t skipped_x = rank - from.size(), skipped = rank - numbers->size();
    const BoundedInt one{1, true};
    const BoundedInt have = i >= skipped_x ? from[i - skipped_x] : one;
    const BoundedInt asked = i >= skipped ? (*numbers)[i - skipped] : one;
    BoundedInt result = asked;
    if (asked == one) result = have;
    if (have != one && asked != one) {
      if (have != asked && !(have.extent >= 0 && have.extent == asked.extent))
        return refuse_extents(node, "the run decides whether its input fits the shape");
      result = have;
    }
    bound[i] = result.most;
    if (result.exact) continue;
    if (extent.axis >= 0) return refuse_extents(node, kTwoAxes);
    const int id = result.extent >= 0
                       ? result.extent
                       : extent_named(fmt::format("element {} of {}", i, node.inputs[1]));
    extent = {static_cast<int>(i), id};
  }
  return TW_TRY(
      add_host(node, "DynamicExpand", node.inputs, std::move(bound), extent, num_outputs));
}

Result<DynamicNodes::Made> DynamicNodes::constant_of_shape(const Node& node, int) {
  const std::optional<BoundedInts> numbers = ints_of(node.inputs[0]);
  if (!numbers || value(node.inputs[0]).constant) return std::nullopt;
  Array fill(DType::F32, {});
  const auto found = node.attrs.values.find("value");
  if (found != node.attrs.values.end()) {
    const Array* given = std::get_if<Array>(&found->second);
    if (given == nullptr || given->size() != 1) return std::nullopt;
    fill = given->reshaped({});
  }
  const ValueId scalar = sink_.add_constant(node.name + ".value", std::move(fill));
  return Values{TW_TRY(add_part(node, "Expand", {scalar, node.inputs[0]}))};
}

Result<DynamicNodes::Made> DynamicNodes::range(const Node& node, int num_outputs) {
  if (node.inputs.size() != 3) return std::nullopt;
  std::vector<BoundedInt> at;
  bool known = true;
  for (ValueId id : node.inputs) {
    const std::optional<BoundedInts> numbers = ints_of(id);
    if (!numbers || numbers->size() != 1) return std::nullopt;
    at.push_back(numbers->front());
    known = known && numbers->front().exact;
  }
  if (known || !at[0].exact || !at[2].exact || at[2].most <= 0) return std::nullopt;
  const bool counts = at[0].most == 0 && at[2].most == 1 && at[1].extent >= 0;
  const int id =
      counts ? at[1].extent
             : extent_named(fmt::format("range {} {} {}", at[0].most, node.inputs[1], at[2].most));
  return TW_TRY(add_host(node, "DynamicRange", node.inputs,
                         {ceil_of(at[1].most - at[0].most, at[2].most)}, {0, id}, num_outputs));
}

/// One axis of a Slice.
Result<BoundedInt> DynamicNodes::sliced_axis(const Node& node, const BoundedInt& whole,
                                             const BoundedInt& start, const BoundedInt& end,
                                             int64_t step) {
  if (!start.exact || step <= 0) return refuse_extents(node, "where a slice begins must be known");
  const bool all =
      start.most == 0 && step == 1 &&
      ((end.exact && end.most >= whole.most) || (end.extent >= 0 && end.extent == whole.extent));
  if (all) return whole;
  if (whole.exact && end.exact) {
    const auto counted = [&](int64_t i) {
      return std::clamp<int64_t>(i < 0 ? i + whole.most : i, 0, whole.most);
    };
    return BoundedInt{ceil_of(counted(end.most) - counted(start.most), step), true};
  }
  int64_t most = whole.most;
  if (end.most >= 0) most = std::min(most, end.most);  // an end below 0 counts from the back
  most = start.most >= 0 ? most - start.most : std::min(most, -std::max(start.most, -most));
  const bool front = whole.exact && start.most == 0 && step == 1 && end.most <= whole.most;
  if (front && end.extent >= 0) return BoundedInt{end.most, false, end.extent};
  const std::string of = end.exact         ? std::to_string(end.most)
                         : end.extent >= 0 ? fmt::format("extent {}", end.extent)
                                           : fmt::format("value {}", node.inputs[2]);
  const std::string from =
      whole.extent >= 0 ? fmt::format("extent {}", whole.extent) : std::to_string(whole.most);
  return BoundedInt{ceil_of(most, step), false,
                    extent_named(fmt::format("{}:{}:{} of {}", start.most, of, step, from))};
}

Result<DynamicNodes::Made> DynamicNodes::slice(const Node& node, int num_outputs) {
  const Extent in = extent_of(node.inputs[0]);
  if (node.inputs.size() < 3 || plain_axis(node, num_outputs)) return std::nullopt;
  const auto starts = ints_of(node.inputs[1]), ends = ints_of(node.inputs[2]);
  if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
  const auto list = [&](size_t i) -> std::optional<BoundedInts> {
    return i < node.inputs.size() && node.inputs[i] >= 0 ? ints_of(node.inputs[i]) : std::nullopt;
  };
  const auto axes = list(3), steps = list(4);
  BoundedInts result = shape_ints(node.inputs[0]);
  const auto rank = static_cast<int64_t>(result.size());
  bool dynamic = in.axis >= 0;
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t axis = static_cast<int64_t>(i), step = 1;
    if (axes && axes->size() > i && (*axes)[i].exact) axis = (*axes)[i].most;
    if (steps && steps->size() > i && (*steps)[i].exact) step = (*steps)[i].most;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    BoundedInt& whole = result[static_cast<size_t>(axis)];
    dynamic = dynamic || !(*starts)[i].exact || !(*ends)[i].exact;
    whole = TW_TRY(sliced_axis(node, whole, (*starts)[i], (*ends)[i], step));
  }
  if (!dynamic) return std::nullopt;
  Shape bound;
  Extent extent;
  for (size_t i = 0; i < result.size(); ++i) {
    bound.push_back(result[i].most);
    if (result[i].exact) continue;
    if (extent.axis >= 0) return refuse_extents(node, kTwoAxes);
    extent = {static_cast<int>(i), result[i].extent};
  }
  return TW_TRY(add_host(node, "DynamicSlice", node.inputs, std::move(bound), extent, num_outputs));
}

Result<DynamicNodes::Made> DynamicNodes::gather(const Node& node, int num_outputs) {
  const Extent x = extent_of(node.inputs[0]), indices = extent_of(node.inputs[1]);
  const int64_t axis = axis_of(node, shape(node.inputs[0]).size(), 0);
  if (x.axis < 0 || x.axis != axis) return std::nullopt;
  const auto types = TW_TRY(tensor::infer(op_call(sink_.graph(), node)));
  Extent extent;
  if (indices.axis >= 0) extent = {static_cast<int>(axis) + indices.axis, indices.id};
  Values inputs = node.inputs;
  if (guard >= 0) inputs.push_back(guard);
  return TW_TRY(add_host(node, "DynamicGather", std::move(inputs), types[0].shape, extent,
                         num_outputs, {{"axis", axis}}));
}

/// Tuples of one index each: a Gather.
Result<DynamicNodes::Made> DynamicNodes::gather_nd(const Node& node, int) {
  const Extent x = extent_of(node.inputs[0]);
  const Shape tuples = shape(node.inputs[1]);
  if (x.axis != 0 || tuples.empty() || tuples.back() != 1 ||
      node.attrs.get_int("batch_dims", 0) != 0)
    return std::nullopt;
  const ValueId axes = add_list(node, {static_cast<int64_t>(tuples.size()) - 1});
  const ValueId indices = TW_TRY(add_part(node, "Squeeze", {node.inputs[1], axes}));
  return Values{TW_TRY(add_part(node, "Gather", {node.inputs[0], indices}))};
}

Result<DynamicNodes::Made> DynamicNodes::concat(const Node& node, int num_outputs) {
  const int64_t axis = axis_of(node, shape(node.inputs[0]).size(), 0);
  std::vector<std::string> parts;
  std::vector<Extent> extents;
  for (ValueId id : node.inputs) {
    const Extent extent = extent_of(id);
    if (extent.axis >= 0 && extent.axis != axis) return std::nullopt;
    if (extent.axis >= 0) extents.push_back(extent);
  }
  if (extents.empty()) return std::nullopt;
  const auto types = TW_TRY(tensor::infer(op_call(sink_.graph(), node)));
  for (ValueId id : node.inputs) {
    const BoundedInt part = shape_ints(id)[static_cast<size_t>(axis)];
    if (part.most == 0) continue;
    parts.push_back(part.exact ? std::to_string(part.most) : fmt::format("extent {}", part.extent));
  }
  const int id = extents.size() == 1 && parts.size() == 1
                     ? extents[0].id
                     : extent_named(fmt::format("{}", fmt::join(parts, " + ")));
  return TW_TRY(add_host(node, "DynamicConcat", node.inputs, types[0].shape,
                         {static_cast<int>(axis), id}, num_outputs, {{"axis", axis}}));
}

Result<DynamicNodes::Made> DynamicNodes::top_k(const Node& node, int num_outputs) {
  if (node.inputs.size() != 2) return std::nullopt;
  const std::optional<BoundedInts> k = ints_of(node.inputs[1]);
  if (!k || k->size() != 1 || k->front().exact) return std::nullopt;
  const Extent in = extent_of(node.inputs[0]);
  Shape bound = shape(node.inputs[0]);
  const int64_t axis = axis_of(node, bound.size(), -1);
  if (axis < 0 || axis >= static_cast<int64_t>(bound.size())) return std::nullopt;
  if (in.axis >= 0 && in.axis != axis) return refuse_extents(node, kTwoAxes);
  int64_t& extent = bound[static_cast<size_t>(axis)];
  extent = std::min(extent, k->front().most);
  const int id = k->front().extent >= 0 ? k->front().extent
                                        : extent_named(fmt::format("value {}", node.inputs[1]));
  return TW_TRY(add_host(node, "DynamicTopK", node.inputs, std::move(bound),
                         {static_cast<int>(axis), id}, num_outputs,
                         {{"axis", axis},
                          {"largest", node.attrs.get_int("largest", 1)},
                          {"sorted", node.attrs.get_int("sorted", 1)}}));
}

}  // namespace tilewright::graph
