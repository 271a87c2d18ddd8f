// Einsum: products of tensors with named axes, contracted pairwise from left to right.
#include <algorithm>
#include <map>
#include <utility>

#include "tilewright/base/check.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

/// An axis name: a letter, or `e1`, `e2`, ... for the axes of the ellipsis, from the right.
using Label = std::string;
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> operands;
  Labels output;
  std::map<Label, int64_t> extents;
};

bool contains(const Labels& labels, const Label& label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// One term. The ellipsis becomes `covered` labels, `e1` the rightmost.
Result<Labels> parse_term(const OpCall& call, const std::string& term, int64_t covered) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (term.compare(i, 3, "...") == 0) {
      for (int64_t k = covered; k > 0; --k) labels.push_back("e" + std::to_string(k));
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.emplace_back(1, c);
    } else {
      return invalid(call, fmt::format("'{}' is not a letter, at position {} of '{}'", c, i, term));
    }
  }
  return labels;
}

int64_t count_letters(const std::string& term) {
  return std::count_if(term.begin(), term.end(), [](char c) { return c != ' ' && c != '.'; });
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms;
  size_t begin = 0;
  for (size_t comma; (comma = text.find(',', begin)) != std::string::npos; begin = comma + 1)
    terms.push_back(text.substr(begin, comma - begin));
  terms.push_back(text.substr(begin));
  return terms;
}

/// Without `->`: the ellipsis first, then the letters named exactly once, in ASCII order.
Labels implicit_output(const std::vector<Labels>& operands, int64_t covered) {
  std::map<Label, int> uses;
  for (const Labels& labels : operands)
    for (const Label& label : labels) ++uses[label];
  Labels out;
  for (int64_t k = covered; k > 0; --k) out.push_back("e" + std::to_string(k));
  for (const auto& [label, count] : uses)
    if (count == 1 && label.size() == 1) out.push_back(label);
  return out;
}

Status read_extents(const OpCall& call, Equation& eq) {
  for (size_t i = 0; i < eq.operands.size(); ++i) {
    const Shape& shape = call.inputs[i].shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const Label& label = eq.operands[i][axis];
      const auto it = eq.extents.emplace(label, shape[axis]).first;
      if (it->second == 1) it->second = shape[axis];
      if (shape[axis] != it->second && shape[axis] != 1)
        return invalid(
            call, fmt::format("axis '{}' is both {} and {} long", label, it->second, shape[axis]),
            fmt::format("operand {} is {}", i, to_string(shape)));
    }
  }
  return {};
}

Result<Equation> equation_of(const OpCall& call) {
  std::string text = call.attrs.get_string("equation", "");
  const size_t arrow = text.find("->");
  const std::vector<std::string> terms = split_terms(text.substr(0, arrow));
  if (terms.size() != call.inputs.size())
    return invalid(call, fmt::format("'{}' has {} operands, {} are given", text, terms.size(),
                                     call.inputs.size()));
  // Operands may cover different numbers of axes by the ellipsis; the longest decides.
  int64_t covered = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto rank = static_cast<int64_t>(call.inputs[i].shape.size());
    const int64_t rest = rank - count_letters(terms[i]);
    const bool dots = terms[i].find("...") != std::string::npos;
    if (rest < 0 || (rest > 0 && !dots))
      return invalid(call, fmt::format("term '{}' does not fit operand {}", terms[i], i),
                     fmt::format("its shape is {}", to_string(call.inputs[i].shape)));
    if (dots) covered = std::max(covered, rest);
  }
  Equation eq;
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto rank = static_cast<int64_t>(call.inputs[i].shape.size());
    eq.operands.push_back(TW_TRY(parse_term(call, terms[i], rank - count_letters(terms[i]))));
  }
  TW_TRY_STATUS(read_extents(call, eq));
  eq.output = arrow == std::string::npos
                  ? implicit_output(eq.operands, covered)
                  : TW_TRY(parse_term(call, text.substr(arrow + 2), covered));
  for (const Label& label : eq.output) {
    if (!eq.extents.contains(label))
      return invalid(call, fmt::format("output axis '{}' is in no operand of '{}'", label, text));
    if (std::count(eq.output.begin(), eq.output.end(), label) > 1)
      return invalid(call, fmt::format("output axis '{}' is named twice in '{}'", label, text));
  }
  return eq;
}

Result<std::vector<TensorType>> infer_einsum(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (!call.inputs[i].present) return invalid(call, fmt::format("input {} is missing", i));
  TW_TRY_STATUS(require_same_dtypes(call));
  if (call.inputs[0].dtype == DType::Bool) return invalid(call, "operands are bool");
  const Equation eq = TW_TRY(equation_of(call));
  Shape shape;
  for (const Label& label : eq.output) shape.push_back(eq.extents.at(label));
  return one_output(call, call.inputs[0].dtype, shape);
}

/// A tensor with its axes' names; a name may occur twice (a diagonal).
struct Named {
  Tensor tensor;
  Labels labels;

  Expr at(const std::map<Label, Expr>& place) const {
    Indices where;
    for (size_t i = 0; i < labels.size(); ++i)
      where.push_back(tensor.dim(i) == 1 ? int_imm(0) : place.at(labels[i]));
    return tensor(where);
  }
};

/// Sum over all labels not in `keep` of a * b (or of a alone, if b is empty), held in `acc`.
Named contract(const std::string& name_of, const Named& a, const Named& b, const Labels& keep,
               const std::map<Label, int64_t>& extents, DType acc) {
  std::vector<Dim> space, over;
  Labels reduced;
  for (const Label& label : keep) space.push_back({label, extents.at(label)});
  for (const Named* t : {&a, &b})
    for (const Label& label : t->labels)
      if (!contains(keep, label) && !contains(reduced, label)) {
        reduced.push_back(label);
        over.push_back({label, extents.at(label)});
      }
  auto value = [&](const Indices& at, const Indices& r) {
    std::map<Label, Expr> place;
    for (size_t i = 0; i < keep.size(); ++i) place[keep[i]] = at[i];
    for (size_t i = 0; i < reduced.size(); ++i) place[reduced[i]] = r[i];
    const Expr x = cast(acc, a.at(place));
    return b.tensor ? x * cast(acc, b.at(place)) : x;
  };
  if (over.empty())
    return {compute(name_of, space, [&](const Indices& at) { return value(at, {}); }), keep};
  return {reduce(name_of, space, over, Combine::Add, value), keep};
}

std::vector<Tensor> define_einsum(const OpCall& call, const std::vector<Tensor>& in) {
  const Equation eq = *equation_of(call);
  const DType dtype = in[0].dtype();
  const DType acc = compute_type(dtype);
  Named product{in[0], eq.operands[0]};
  for (size_t i = 1; i < std::max<size_t>(in.size(), 2); ++i) {
    const bool last = i + 1 >= in.size();
    const Named next = i < in.size() ? Named{in[i], eq.operands[i]} : Named{};
    Labels keep;
    if (last) {
      keep = eq.output;
    } else {
      // An axis stays while the output or a later operand names it.
      for (const Named* factor : {&std::as_const(product), &next})
        for (const Label& label : factor->labels) {
          bool needed = contains(eq.output, label);
          for (size_t k = i + 1; k < in.size(); ++k)
            needed = needed || contains(eq.operands[k], label);
          if (needed && !contains(keep, label)) keep.push_back(label);
        }
    }
    const std::string name_of = last ? call.op : call.op + ".product" + std::to_string(i);
    product = contract(name_of, product, next, keep, eq.extents, acc);
  }
  if (acc == dtype) return {product.tensor};
  return {compute(call.op + ".rounded", dims_of(product.tensor.shape()),
                  [&](const Indices& at) { return cast(dtype, product.tensor(at)); })};
}

}  // namespace

void add_einsum_op(std::vector<OpDef>& table) {
  OpDef def = movement_row("Einsum", 1, -1, infer_einsum, define_einsum);
  def.fusion = Fusion::Complex;
  table.push_back(std::move(def));
}

}  // namespace tilewright::tensor
