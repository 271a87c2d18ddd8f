// Integers followed through the few operators that exporters compute shapes with.
//
// Example: keep at most 1000 of N boxes, N <= 4096: Shape(boxes) = (N, 4) exactly 4; Gather takes
// N; Concat gives (1000, N); ReduceMin at most 1000, though nobody knows what. So TopK has a bound.
#include "tilewright/graph/onnx/bounded_ints.h"

#include <algorithm>

#include "tilewright/tensor/shape_util.h"

namespace tilewright::graph {
namespace {

using tensor::OpCall;
using Known = std::optional<BoundedInts>;

struct Followed {
  const OpCall& call;
  const std::vector<Known>& in;
  const Shape& result;

  /// Elements of input `i`, repeated where there is one for all results.
  Known broadcast(size_t i) const {
    const auto count = static_cast<size_t>(element_count(result));
    if (i >= in.size() || !in[i]) return std::nullopt;
    if (in[i]->size() == count) return in[i];
    if (in[i]->size() != 1) return std::nullopt;
    return BoundedInts(count, in[i]->front());
  }
};

Known same_elements(const Followed& f) {
  if (!f.in[0] || static_cast<int64_t>(f.in[0]->size()) != element_count(f.result))
    return std::nullopt;
  return f.in[0];
}

Known cast(const Followed& f) {
  const Result<DType> to = tensor::onnx_dtype(f.call.attrs.get_int("to", 0));
  if (!to || (*to != DType::I64 && *to != DType::I32)) return std::nullopt;
  return same_elements(f);
}

Known gathered(const Followed& f) {
  const tensor::InputInfo& indices = f.call.inputs[1];
  if (!f.in[0] || f.call.inputs[0].shape.size() != 1 || !indices.value) return std::nullopt;
  BoundedInts out;
  const auto size = static_cast<int64_t>(f.in[0]->size());
  for (int64_t index : indices.value->to_ints()) {
    if (index < -size || index >= size) return std::nullopt;
    out.push_back((*f.in[0])[static_cast<size_t>(index < 0 ? index + size : index)]);
  }
  return out;
}

Known sliced(const Followed& f) {
  if (!f.in[0] || f.call.inputs[0].shape.size() != 1) return std::nullopt;
  for (size_t i = 1; i < f.call.inputs.size(); ++i)
    if (f.call.inputs[i].present && !f.call.inputs[i].value) return std::nullopt;
  const std::vector<int64_t> starts = tensor::int_values(f.call, 1);
  const std::vector<int64_t> steps = tensor::int_values(f.call, 4);
  if (starts.size() != 1 || (!steps.empty() && steps[0] != 1)) return std::nullopt;
  const auto size = static_cast<int64_t>(f.in[0]->size());
  const int64_t first = std::clamp<int64_t>(starts[0] < 0 ? starts[0] + size : starts[0], 0, size);
  const int64_t count = element_count(f.result);
  if (first + count > size) return std::nullopt;
  return BoundedInts(f.in[0]->begin() + first, f.in[0]->begin() + first + count);
}

Known joined(const Followed& f) {
  BoundedInts out;
  for (const Known& part : f.in) {
    if (!part) return std::nullopt;
    out.insert(out.end(), part->begin(), part->end());
  }
  return out;
}

/// Integers below 0 are followed only where all are exact.
std::optional<BoundedInt> combined(const std::string& op, const BoundedInt& a,
                                   const BoundedInt& b) {
  const bool exact = a.exact && b.exact;
  if (!exact && (a.most < 0 || b.most < 0)) return std::nullopt;
  if (op == "Min" || op == "Max") {
    if (a == b) return a;
    // An extent lies between 0 and its bound, so a number outside changes nothing.
    const bool min = op == "Min";
    if (a.exact && (min ? a.most >= b.most : a.most == 0)) return b;
    if (b.exact && (min ? b.most >= a.most : b.most == 0)) return a;
    return BoundedInt{min ? std::min(a.most, b.most) : std::max(a.most, b.most), exact};
  }
  int64_t result = 0;
  if (op == "Add") {
    if (a.exact && a.most == 0) return b;
    if (b.exact && b.most == 0) return a;
    if (__builtin_add_overflow(a.most, b.most, &result)) return std::nullopt;
    return BoundedInt{result, exact};
  }
  if (a.exact && a.most == 1) return b;
  if (b.exact && b.most == 1) return a;
  if (__builtin_mul_overflow(a.most, b.most, &result)) return std::nullopt;
  return BoundedInt{result, exact};
}

Known arithmetic(const Followed& f) {
  Known out = f.broadcast(0);
  for (size_t i = 1; i < f.call.inputs.size(); ++i) {
    const Known next = f.broadcast(i);
    if (!out || !next) return std::nullopt;
    for (size_t k = 0; k < out->size(); ++k) {
      const std::optional<BoundedInt> number = combined(f.call.op, (*out)[k], (*next)[k]);
      if (!number) return std::nullopt;
      (*out)[k] = *number;
    }
  }
  return out;
}

Known divided(const Followed& f) {
  Known out = f.broadcast(0);
  const Known by = f.broadcast(1);
  if (!out || !by) return std::nullopt;
  for (size_t k = 0; k < out->size(); ++k) {
    const BoundedInt& divisor = (*by)[k];
    if (!divisor.exact || divisor.most <= 0 || (*out)[k].most < 0) return std::nullopt;
    if (divisor.most > 1) (*out)[k] = {(*out)[k].most / divisor.most, (*out)[k].exact};
  }
  return out;
}

/// Of all elements: `f` knows them all, since there are few.
Known reduced(const Followed& f) {
  if (!f.in[0] || f.in[0]->empty() || element_count(f.result) != 1) return std::nullopt;
  const std::string op = f.call.op == "ReduceMin"   ? "Min"
                         : f.call.op == "ReduceMax" ? "Max"
                         : f.call.op == "ReduceSum" ? "Add"
                                                    : "Mul";
  BoundedInt all = f.in[0]->front();
  for (size_t i = 1; i < f.in[0]->size(); ++i) {
    const std::optional<BoundedInt> number = combined(op, all, (*f.in[0])[i]);
    if (!number) return std::nullopt;
    all = *number;
  }
  return BoundedInts{all};
}

/// 0 or 1, where bounds can tell: no extent is -1.
Known equal(const Followed& f) {
  const Known a = f.broadcast(0), b = f.broadcast(1);
  if (!a || !b) return std::nullopt;
  BoundedInts out;
  for (size_t k = 0; k < a->size(); ++k) {
    const BoundedInt &x = (*a)[k], &y = (*b)[k];
    const bool same = x == y && (x.exact || x.extent >= 0);
    const auto outside = [](const BoundedInt& one, const BoundedInt& other) {
      return one.exact && (one.most < 0 || one.most > other.most);
    };
    const bool differ = (x.exact && y.exact && x.most != y.most) || outside(x, y) || outside(y, x);
    out.push_back({same || !differ ? 1 : 0, same || differ});
  }
  return out;
}

Known chosen(const Followed& f) {
  const Known condition = f.broadcast(0), yes = f.broadcast(1), no = f.broadcast(2);
  if (!yes || !no) return std::nullopt;
  BoundedInts out;
  for (size_t k = 0; k < yes->size(); ++k) {
    const BoundedInt &a = (*yes)[k], &b = (*no)[k];
    if (condition && (*condition)[k].exact) {
      out.push_back((*condition)[k].most != 0 ? a : b);
      continue;
    }
    if (a != b && (a.most < 0 || b.most < 0)) return std::nullopt;
    out.push_back(a == b ? a : BoundedInt{std::max(a.most, b.most)});
  }
  return out;
}

struct BoundedRow {
  const char* op;
  Known (*rule)(const Followed&);
};
constexpr BoundedRow kBoundedRows[] = {{"Identity", same_elements}, {"Reshape", same_elements},
                                       {"Squeeze", same_elements},  {"Unsqueeze", same_elements},
                                       {"Flatten", same_elements},  {"Cast", cast},
                                       {"Gather", gathered},        {"Slice", sliced},
                                       {"Concat", joined},          {"Min", arithmetic},
                                       {"Max", arithmetic},         {"Add", arithmetic},
                                       {"Mul", arithmetic},         {"Div", divided},
                                       {"ReduceMin", reduced},      {"ReduceMax", reduced},
                                       {"ReduceSum", reduced},      {"ReduceProd", reduced},
                                       {"Where", chosen},           {"Equal", equal}};

}  // namespace

std::optional<BoundedInts> exact_ints(const Array& value) {
  if (!(is_int(value.dtype()) || value.dtype() == DType::Bool) || value.size() > kMostBoundedInts)
    return std::nullopt;
  BoundedInts out;
  for (int64_t v : value.to_ints()) out.push_back({v, true});
  return out;
}

std::optional<BoundedInts> derived_ints(const OpCall& call, const std::vector<Known>& inputs,
                                        const Shape& result) {
  if (!call.domain.empty() || inputs.empty() || result.size() > 1 ||
      element_count(result) > kMostBoundedInts)
    return std::nullopt;
  for (const BoundedRow& row : kBoundedRows)
    if (call.op == row.op) return row.rule({call, inputs, result});
  return std::nullopt;
}

}  // namespace tilewright::graph
