// Bilinear forms y[b, o] = sum_ij x[b, i] w[o, i, j] z[b, j] with a known weight as matrix
// products.
//
//   x [4, 7], w [3, 7, 5], z [4, 5]:  half[b, (o, j)] = x w as a matrix [7, 15]
//                                     y[b, o]         = sum_j half[b, o, j] z[b, j]
//
// First comes the factor that makes the smaller half. Where all pairs x[b, i] z[b, j] are fewer
// still, they are made first, and one product with the weight as a matrix [35, 3] follows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// Terms of a sum whose weights stay in the second cache while rows pass.
constexpr int64_t kDeepest = 2048;

/// y[b, o] = sum over i, j of x[b, i] w z[b, j]; `order` names the axes of the weight.
struct Form {
  ValueId x = -1, w = -1, z = -1;
  std::string order;  ///< of "oij", permuted
};

/// The operands of an Einsum and its result, each as letters; empty where it says more than that.
std::vector<std::string> terms_of(const Node& node) {
  std::string text = node.attrs.get_string("equation", "");
  std::erase(text, ' ');
  std::vector<std::string> terms(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      terms.emplace_back();
    } else if (text.compare(i, 2, "->") == 0) {
      terms.emplace_back(), ++i;
    } else if (text[i] == '.') {
      return {};
    } else {
      terms.back() += text[i];
    }
  }
  return terms;
}

/// A bilinear form with a known weight.
std::optional<Form> form_of(const Graph& graph, const Node& node) {
  const auto known = [&](ValueId id) {
    const Value& value = graph.values[static_cast<size_t>(id)];
    return value.constant && is_float(value.type.dtype);
  };
  if (node.domain == "tilewright" && node.op == "Bilinear")
    return known(node.inputs[1])
               ? std::optional(Form{node.inputs[0], node.inputs[1], node.inputs[2], "oij"})
               : std::nullopt;
  if (!node.domain.empty() || node.op != "Einsum" || node.inputs.size() != 3) return std::nullopt;
  const std::vector<std::string> terms = terms_of(node);
  if (terms.size() != 4 || terms[3].size() != 2) return std::nullopt;
  const char batch = terms[3][0], out = terms[3][1];
  Form form;
  std::string letters = {out};
  for (size_t t = 0; t < 3; ++t) {
    const ValueId id = node.inputs[t];
    if (terms[t].size() == 3 && form.w < 0 && known(id)) {
      form.w = id, form.order = terms[t];
    } else if (terms[t].size() == 2 && terms[t][0] == batch) {
      (form.x < 0 ? form.x : form.z) = id;
      letters += terms[t][1];
    }
  }
  if (form.w < 0 || form.z < 0 || letters.find(batch) != std::string::npos) return std::nullopt;
  if (letters[1] == letters[2] || letters[0] == letters[1] || letters[0] == letters[2] ||
      !std::is_permutation(letters.begin(), letters.end(), form.order.begin()))
    return std::nullopt;
  for (char& c : form.order) c = "oij"[letters.find(c)];
  return form;
}

/// Where element [o, i, j] goes: each axis' step in the matrix.
struct Steps {
  int64_t o, i, j;
};

/// w, whose axes are in `order`, as a matrix.
Array matrix_of(const Array& w, const std::string& order, const Shape& shape, const Steps& steps) {
  const Shape& s = w.shape();
  Array result(w.dtype(), shape);
  const auto size = static_cast<size_t>(bit_width(w.dtype()) / 8);
  const char* from = static_cast<const char*>(w.data());
  char* to = static_cast<char*>(result.data());
  std::array<int64_t, 3> step{};
  for (size_t axis = 0; axis < 3; ++axis)
    step[axis] = order[axis] == 'o' ? steps.o : order[axis] == 'i' ? steps.i : steps.j;
  const int64_t run = step[2] == 1 ? s[2] : 1;  // elements that stay beside each other
  const size_t bytes = static_cast<size_t>(run) * size;
  for (int64_t a = 0; a < s[0]; ++a)
    for (int64_t b = 0; b < s[1]; ++b)
      for (int64_t c = 0; c < s[2]; c += run, from += bytes)
        std::memcpy(to + static_cast<size_t>(a * step[0] + b * step[1] + c * step[2]) * size, from,
                    bytes);
  return result;
}

/// One bilinear form as products whose values in between are as small as can be.
class BilinearSplitting {
 public:
  BilinearSplitting(Editor& out, const Node& node, const Form& form)
      : out_(out),
        node_(node),
        order_(form.order),
        w_(array_of(out.value(form.w))),
        x_(form.x),
        z_(form.z),
        batch_(out.shape(x_)[0]),
        o_(extent('o')),
        i_(extent('i')),
        j_(extent('j')) {}

  Status run() {
    const int64_t between = std::min(o_ * j_, o_ * i_);
    if (i_ * j_ < between && i_ * j_ <= kDeepest) return pairs_first();
    return o_ * j_ <= o_ * i_ ? halve(x_, {i_, o_ * j_}, {j_, o_ * j_, 1}, z_, j_)
                              : halve(z_, {j_, o_ * i_}, {i_, 1, o_ * i_}, x_, i_);
  }

 private:
  int64_t extent(char axis) const { return w_.shape()[order_.find(axis)]; }

  /// One factor times the weight, then each row times the other factor.
  Status halve(ValueId first, const Shape& shape, const Steps& steps, ValueId other, int64_t left) {
    const ValueId matrix =
        out_.constant(node_.name + ".matrix", matrix_of(w_, order_, shape, steps));
    const ValueId half = TW_TRY(append("/half", "MatMul", {first, matrix}));
    const ValueId rows = TW_TRY(reshape("/rows", half, {batch_, o_, left}));
    const ValueId column = TW_TRY(reshape("/column", other, {batch_, left, 1}));
    const ValueId sums = TW_TRY(append("/sum", "MatMul", {rows, column}));
    out_.put({node_.name,
              "",
              "Reshape",
              {},
              {sums, out_.ints(node_.name + ".shape", {batch_, o_})},
              node_.outputs});
    return {};
  }

  /// All pairs of the factors' elements, then one product with the weight.
  Status pairs_first() {
    const ValueId matrix = out_.constant(node_.name + ".matrix",
                                         matrix_of(w_, order_, {i_ * j_, o_}, {1, j_ * o_, o_}));
    const ValueId column = TW_TRY(reshape("/column", x_, {batch_, i_, 1}));
    const ValueId row = TW_TRY(reshape("/row", z_, {batch_, 1, j_}));
    const ValueId pairs = TW_TRY(append("/pairs", "Mul", {column, row}));
    const ValueId rows = TW_TRY(reshape("/rows", pairs, {batch_, i_ * j_}));
    out_.put({node_.name, "", "MatMul", {}, {rows, matrix}, node_.outputs});
    return {};
  }

  Result<ValueId> append(const std::string& name, const std::string& op,
                         std::vector<ValueId> inputs) {
    return out_.append(node_.name + name, op, std::move(inputs));
  }

  Result<ValueId> reshape(const std::string& name, ValueId id, const Shape& shape) {
    return append(name, "Reshape", {id, out_.ints(node_.name + name + ".shape", shape)});
  }

  Editor& out_;
  const Node& node_;
  const std::string order_;
  const Array w_;
  const ValueId x_, z_;
  const int64_t batch_, o_, i_, j_;
};

}  // namespace

Result<Graph> split_bilinear(const Graph& graph, PassContext& context) {
  Editor out(graph);
  int count = 0;
  for (const Node& node : out.take_nodes()) {
    const std::optional<Form> form = form_of(out.graph(), node);
    if (!form) {
      out.put(node);
      continue;
    }
    out.release(node);
    TW_TRY_STATUS(BilinearSplitting(out, node, *form).run());
    ++count;
  }
  if (count > 0) context.notes.push_back(fmt::format("{} bilinear forms split", count));
  return std::move(out.graph());
}

}  // namespace tilewright::graph
