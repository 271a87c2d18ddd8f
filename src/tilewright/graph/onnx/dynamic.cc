// One rule per family of operators. An extent known only at run time stays what it is through
// operators that work element by element; others move it to another axis, drop it or make a new
// one.
//
// Example: x has shape (N, 8), N unknown: Relu(x) has it on axis 0, Transpose(x) on axis 1, and
// NonZero(x) has a new one, since nobody knows how many elements are not 0. Adding two values with
// different unknown extents is refused: whether they are equal is known only at run time.
#include "tilewright/graph/onnx/dynamic.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/graph/ir/elementwise.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::graph {
namespace {

using tensor::OpCall;
using tensor::TensorType;

/// What a rule sees and gives.
struct Case {
  const OpCall& call;
  const std::vector<Extent>& in;  ///< by input
  const std::vector<TensorType>& types;
  int& next_id;

  const Shape& shape(size_t i) const { return call.inputs[i].shape; }
  bool dynamic(size_t i) const { return i < in.size() && in[i].axis >= 0; }
  int64_t bound(size_t i) const { return shape(i)[static_cast<size_t>(in[i].axis)]; }
  /// Attribute `axis`, counted from the front.
  int axis(size_t rank, int64_t fallback = 0) const {
    const int64_t axis = call.attrs.get_int("axis", fallback);
    return static_cast<int>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  }
  /// The same extent for every result.
  std::vector<Extent> all(Extent extent) const { return std::vector<Extent>(types.size(), extent); }
};

using Extents = Result<std::vector<Extent>>;

tl::unexpected<Error> refuse(std::string why) {
  return fail(ErrorKind::Unsupported, "", std::move(why));
}

/// Inputs broadcast to the result: all that have such an axis share it, the others have 1 there.
Extents elementwise(const Case& c) {
  const auto rank = static_cast<int>(c.types[0].shape.size());
  Extent out;
  int64_t bound = 0;
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (!c.dynamic(i)) continue;
    const Extent here{c.in[i].axis + rank - static_cast<int>(c.shape(i).size()), c.in[i].id};
    if (out.axis >= 0 && out != here) return refuse("the run decides whether its inputs fit");
    out = here;
    bound = c.bound(i);
  }
  if (c.types[0].shape[static_cast<size_t>(out.axis)] != bound)
    return refuse("the run decides whether its inputs fit");
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (c.dynamic(i) || !c.call.inputs[i].present) continue;
    const int axis = out.axis - rank + static_cast<int>(c.shape(i).size());
    if (axis >= 0 && c.shape(i)[static_cast<size_t>(axis)] != 1)
      return refuse(fmt::format("input {} has {} elements along it, whatever the run finds", i,
                                c.shape(i)[static_cast<size_t>(axis)]));
  }
  return c.all(out);
}

/// The same for operators whose other inputs are not broadcast: these must be single elements.
Extents of_first(const Case& c) {
  for (size_t i = 1; i < c.in.size(); ++i)
    if (c.dynamic(i) || (c.call.inputs[i].present && element_count(c.shape(i)) != 1))
      return refuse(fmt::format("input {} is not a single number", i));
  return c.all(c.in[0]);
}

/// Where the axis of a Reshape's input is in its result: copied by a 0 of the shape, or what a -1
/// stands for.
Result<int> asked_axis(const Case& c) {
  const std::vector<int64_t> asked = tensor::int_values(c.call, 1);
  const auto axis = static_cast<size_t>(c.in[0].axis);
  if (axis < asked.size() && asked[axis] == 0 && c.call.attrs.get_int("allowzero", 0) == 0)
    return c.in[0].axis;
  const auto inferred = std::find(asked.begin(), asked.end(), -1);
  if (inferred == asked.end())
    return refuse(fmt::format("the shape asks for exactly {}", to_string(asked)));
  return static_cast<int>(inferred - asked.begin());
}

Result<int> flattened_axis(const Case& c) {
  const auto rank = static_cast<int>(c.shape(0).size());
  const auto split = static_cast<int>(c.call.attrs.get_int("axis", 1));
  return c.in[0].axis < (split < 0 ? split + rank : split) ? 0 : 1;
}

Result<int> squeezed_axis(const Case& c) {
  const auto rank = static_cast<int64_t>(c.shape(0).size());
  if (!c.call.input(1)) return refuse("without axes the run decides whether that axis goes, too");
  int axis = c.in[0].axis;
  for (const int64_t asked : tensor::int_values(c.call, 1)) {
    const auto gone = static_cast<int>(asked < 0 ? asked + rank : asked);
    if (gone == c.in[0].axis) return refuse("the run decides whether there is one element");
    if (gone < c.in[0].axis) --axis;
  }
  return axis;
}

Result<int> unsqueezed_axis(const Case& c) {
  const auto rank = static_cast<int>(c.types[0].shape.size());
  std::vector<bool> made(static_cast<size_t>(rank), false);
  for (const int64_t asked : tensor::int_values(c.call, 1))
    made[static_cast<size_t>(asked < 0 ? asked + rank : asked)] = true;
  int axis = 0;
  for (int old = -1; axis < rank; ++axis)
    if (!made[static_cast<size_t>(axis)] && ++old == c.in[0].axis) break;
  return axis;
}

/// The same elements in another shape that has the axis too, with as many elements before it: rows
/// of the bound's length stay where they are. Where there is one element at most, there are no
/// rows.
Extents reshaped(const Case& c) {
  if (!c.dynamic(0)) return refuse("it decides the shape");
  const std::string& op = c.call.op;
  const int axis = TW_TRY(op == "Reshape"   ? asked_axis(c)
                          : op == "Flatten" ? flattened_axis(c)
                          : op == "Squeeze" ? squeezed_axis(c)
                                            : unsqueezed_axis(c));
  const Shape &from = c.shape(0), &to = c.types[0].shape;
  const auto before = [](const Shape& shape, int end) {
    return element_count(Shape(shape.begin(), shape.begin() + end));
  };
  const int64_t bound = c.bound(0);
  if (to[static_cast<size_t>(axis)] != bound ||
      (bound > 1 && before(to, axis) != before(from, c.in[0].axis)))
    return refuse("the new shape mixes that axis with others");
  return c.all({axis, c.in[0].id});
}

Extents transposed(const Case& c) {
  const auto rank = static_cast<int>(c.shape(0).size());
  const std::vector<int64_t> perm = c.call.attrs.get_ints("perm");
  if (perm.empty()) return c.all({rank - 1 - c.in[0].axis, c.in[0].id});
  for (int i = 0; i < rank; ++i)
    if ((perm[static_cast<size_t>(i)] + rank) % rank == c.in[0].axis) return c.all({i, c.in[0].id});
  return refuse("perm leaves it out");
}

Extents joined(const Case& c) {
  for (const Extent& extent : c.in)
    if (extent != c.in[0]) return refuse("the run decides whether its inputs fit");
  if (c.axis(c.shape(0).size()) == c.in[0].axis)
    return refuse("the parts would not be side by side");
  return c.all(c.in[0]);
}

Extents split(const Case& c) {
  if (!c.dynamic(0)) return refuse("it decides the shape");
  if (c.axis(c.shape(0).size()) == c.in[0].axis) return refuse("that axis would be cut");
  return c.all(c.in[0]);
}

Extents sliced(const Case& c) {
  if (!c.dynamic(0)) return refuse("it decides the shape");
  const auto starts = tensor::int_values(c.call, 1), ends = tensor::int_values(c.call, 2);
  const auto axes = tensor::int_values(c.call, 3), steps = tensor::int_values(c.call, 4);
  const auto rank = static_cast<int64_t>(c.shape(0).size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : (axes[i] + rank) % rank;
    const bool whole = starts[i] == 0 && ends[i] >= c.bound(0) && (steps.empty() || steps[i] == 1);
    if (axis == c.in[0].axis && !whole) return refuse("that axis would be cut");
  }
  return c.all(c.in[0]);
}

Extents gathered(const Case& c) {
  const int axis = c.axis(c.shape(0).size());
  if (c.dynamic(0) && c.dynamic(1)) return refuse("both its inputs have such an axis");
  if (c.dynamic(1)) return c.all({axis + c.in[1].axis, c.in[1].id});
  if (c.in[0].axis == axis) return refuse("the run decides which indices there are");
  const int moved = static_cast<int>(c.shape(1).size()) - 1;
  return c.all({c.in[0].axis < axis ? c.in[0].axis : c.in[0].axis + moved, c.in[0].id});
}

/// GatherElements and GatherND: as many results as indices.
Extents by_indices(const Case& c) {
  if (c.dynamic(0)) return refuse("the run decides which indices there are");
  const bool tuples = c.call.op == "GatherND";
  if (tuples && (c.in[1].axis + 1 == static_cast<int>(c.shape(1).size()) ||
                 c.in[1].axis < c.call.attrs.get_int("batch_dims", 0)))
    return refuse("the indices are not a list of tuples");
  return c.all(c.in[1]);
}

Extents same(const Case& c) { return c.all(c.in[0]); }

// --- Operators of the host: they work on the real shapes.

Extents non_zero(const Case& c) { return c.all({1, c.next_id++}); }

Extents unique(const Case& c) {
  const bool flat = !c.call.attrs.has("axis");
  const int axis = flat ? 0 : c.axis(c.shape(0).size());
  if (!flat && c.dynamic(0) && c.in[0].axis != axis)
    return refuse("its result would have two such axes");
  const int found = c.next_id++;
  const bool one = c.dynamic(0) && c.shape(0).size() == 1;
  const Extent inverse = c.dynamic(0) ? Extent{0, one ? c.in[0].id : c.next_id++} : Extent{};
  std::vector<Extent> out = {{axis, found}, {0, found}, inverse, {0, found}};
  out.resize(c.types.size());
  return out;
}

Extents compress(const Case& c) {
  const bool flat = !c.call.attrs.has("axis");
  const int axis = flat ? 0 : c.axis(c.shape(0).size());
  if (!flat && c.dynamic(0) && c.in[0].axis != axis)
    return refuse("its result would have two such axes");
  return c.all({axis, c.next_id++});
}

Extents non_max_suppression(const Case& c) {
  const Extent &boxes = c.in[0], &scores = c.in[1];
  const bool fit = scores.axis == 1 ? boxes.axis < 0
                                    : (boxes.axis < 0 && scores.axis < 0) ||
                                          (boxes.id == scores.id && boxes.axis < 2 &&
                                           scores.axis == 2 * boxes.axis);
  for (size_t i = 2; i < c.in.size(); ++i)
    if (c.dynamic(i)) return refuse("its limits are single numbers");
  if (!fit) return refuse("the run decides whether boxes and scores fit");
  return c.all({0, c.next_id++});
}

Extents top_k(const Case& c) {
  if (c.in[0].axis == c.axis(c.shape(0).size(), -1))
    return refuse("the run decides whether there are K elements");
  return c.all(c.in[0]);
}

Extents scatter_elements(const Case& c) {
  const Extent &data = c.in[0], &indices = c.in[1];
  if (indices != c.in[2]) return refuse("the run decides whether indices and updates fit");
  const bool inside = data.axis < 0 || data.axis == c.axis(c.shape(0).size()) || data == indices;
  if (!inside) return refuse("the run decides whether the indices fit the data");
  return c.all(data);
}

Extents scatter_nd(const Case& c) {
  const Extent &data = c.in[0], &indices = c.in[1];
  const auto prefix = static_cast<int>(c.shape(1).size()) - 1;
  const auto depth = static_cast<int>(c.shape(1).back());
  if (indices.axis == prefix) return refuse("the index tuples have no fixed length");
  const bool slices = data.axis >= depth;
  if (slices && indices.axis >= 0) return refuse("its updates would have two such axes");
  const Extent updates = slices ? Extent{prefix + data.axis - depth, data.id} : indices;
  if (updates != c.in[2]) return refuse("the run decides whether the updates fit");
  return c.all(data);
}

struct Row {
  const char* domain;
  const char* op;
  Extents (*rule)(const Case&);
};
constexpr Row kRows[] = {{"", "BatchNormalization", of_first},
                         {"", "CastLike", of_first},
                         {"", "DequantizeLinear", of_first},
                         {"", "QuantizeLinear", of_first},
                         {"", "Reshape", reshaped},
                         {"", "Flatten", reshaped},
                         {"", "Squeeze", reshaped},
                         {"", "Unsqueeze", reshaped},
                         {"", "Transpose", transposed},
                         {"", "Concat", joined},
                         {"", "Split", split},
                         {"", "Slice", sliced},
                         {"", "Gather", gathered},
                         {"", "GatherElements", by_indices},
                         {"", "GatherND", by_indices},
                         {"tilewright", "CheckRange", same},
                         {"", "NonZero", non_zero},
                         {"", "Unique", unique},
                         {"", "Compress", compress},
                         {"", "NonMaxSuppression", non_max_suppression},
                         {"", "TopK", top_k},
                         {"", "Scatter", scatter_elements},
                         {"", "ScatterElements", scatter_elements},
                         {"", "ScatterND", scatter_nd}};

Extents apply(const Case& c) {
  for (const Row& row : kRows)
    if (c.call.domain == row.domain && c.call.op == row.op) return row.rule(c);
  Node node;
  node.domain = c.call.domain;
  node.op = c.call.op;
  if (is_elementwise(node)) return elementwise(c);
  if (const tensor::OpDef* op = tensor::find_op(node.domain, node.op);
      op != nullptr && node.domain == "tilewright" && !op->host.empty())
    return refuse("importing makes it where the run decides extents; compile the original model");
  return refuse("this operator needs to know all extents at compile time");
}

}  // namespace

Extents dynamic_extents(const OpCall& call, const std::vector<Extent>& inputs,
                        const std::vector<TensorType>& types, int& next_id) {
  const auto is_dynamic = [](const Extent& extent) { return extent.axis >= 0; };
  const bool made = std::any_of(types.begin(), types.end(),
                                [](const TensorType& type) { return type.dynamic_axis >= 0; });
  const auto first = std::find_if(inputs.begin(), inputs.end(), is_dynamic);
  if (!made && first == inputs.end()) return std::vector<Extent>(types.size());
  Extents extents = apply({call, inputs, types, next_id});
  if (extents) return extents;
  Error error = std::move(extents.error());
  const auto i = static_cast<size_t>(first - inputs.begin());
  error.what = fmt::format("{} of input {}, whose axis {} is known only at run time", call.op, i,
                           first->axis);
  error.why += fmt::format("; at most {} elements there",
                           call.inputs[i].shape[static_cast<size_t>(first->axis)]);
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace tilewright::graph
