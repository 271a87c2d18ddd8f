// Products of bytes without zero points, as matrix instructions multiply them; sums of either
// operand times the other's zero point go behind.
//
//   MatMulInteger(x, w, a)  =>  Sub(MatMulInteger(x, w), Mul(a, ReduceSum(w, rows)))
//   w known, with a zero point b: w - b takes its place where bytes hold that
#include <fmt/format.h>

#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// sum (x - a) (w - b) = sum x w - a * sum w - b * (sum x - a * terms)
class ZeroPoints : private Editor {
 public:
  ZeroPoints(const Graph& graph, PassContext& context) : Editor(graph), context_(context) {}

  Result<Graph> run() {
    for (size_t n = 0, count = graph().nodes.size(); n < count; ++n) TW_TRY_STATUS(node(n));
    if (moved_ == 0) return std::move(graph());
    context_.notes.push_back(fmt::format("zero points of {} products behind their sums", moved_));
    return compact(graph());
  }

 private:
  /// Input `i` of `node`; -1 where it is absent or known to be zero.
  ValueId point(const Node& node, size_t i) {
    const ValueId id = i < node.inputs.size() ? node.inputs[i] : -1;
    const Array* array = known(id);
    for (int64_t k = 0; array != nullptr && k < array->size(); ++k)
      if (array->get_int(k) != 0) return id;
    return array != nullptr ? -1 : id;
  }

  Status node(size_t n) {
    const Node old = graph().nodes[n];
    const bool conv = old.op == "ConvInteger";
    if (!old.domain.empty() || (!conv && old.op != "MatMulInteger")) return {};
    const ValueId x = old.inputs[0], x_zero = point(old, 2);
    ValueId w = old.inputs[1], w_zero = point(old, 3);
    if ((x_zero < 0 && w_zero < 0) || value(old.outputs[0]).type.dynamic_axis >= 0 ||
        shape(x).size() < 2 || shape(w).size() < 2 || (x_zero >= 0 && elements(x_zero) != 1))
      return {};
    std::optional<Array> moved;
    if (w_zero >= 0) moved = without_zero(w, w_zero, conv ? 0 : shape(w).size() - 1);
    const bool sums = w_zero >= 0 && !moved;
    if (sums && (elements(w_zero) != 1 || (conv && old.attrs.get_int("group", 1) != 1))) return {};
    if (context_.dot_depth(value(x).type.dtype, moved ? moved->dtype() : value(w).type.dtype) == 0)
      return {};
    if (moved) w = constant(old.name + ".weight", *std::move(moved)), w_zero = -1;
    ValueId made = TW_TRY(product(old, x, w, x_zero));
    if (x_zero >= 0) made = TW_TRY(less(old, made, x_zero, TW_TRY(totals(old, w, conv))));
    if (w_zero >= 0) made = TW_TRY(less(old, made, w_zero, TW_TRY(windows(old, x, w, x_zero))));
    moved_ += forward(graph(), old.outputs[0], made);
    return {};
  }

  int64_t elements(ValueId id) { return element_count(shape(id)); }

  /// Known weights less their zero point (one, or one per element of `axis`) where bytes hold them.
  std::optional<Array> without_zero(ValueId id, ValueId zero, size_t axis) {
    const Array *w = known(id), *points = known(zero);
    if (w == nullptr || points == nullptr || points->shape().size() > 1) return std::nullopt;
    int64_t inner = 1, least = 0, most = 0;
    for (size_t d = axis + 1; d < w->shape().size(); ++d) inner *= w->shape()[d];
    const auto at = [&](int64_t i) {
      return w->get_int(i) - points->get_int(i / inner % w->shape()[axis] % points->size());
    };
    for (int64_t i = 0; i < w->size(); ++i)
      least = std::min(least, at(i)), most = std::max(most, at(i));
    if (most - least > 255 || least < -128 || most > (least < 0 ? 127 : 255)) return std::nullopt;
    Array out(least < 0 ? DType::I8 : DType::U8, w->shape());
    for (int64_t i = 0; i < w->size(); ++i) out.set_int(i, at(i));
    return out;
  }

  /// Products of the bytes alone; the padding of images stands for their zero point.
  Result<ValueId> product(const Node& old, ValueId x, ValueId w, ValueId x_zero) {
    std::vector<ValueId> inputs = {x, w};
    if (old.op == "MatMulInteger") return append(old.name + "/Bytes", old.op, inputs);
    if (x_zero >= 0) inputs.push_back(x_zero);
    return append_own(old.name + "/Bytes", "ConvBytes", inputs, old.attrs);
  }

  Result<ValueId> wide(const Node& old, ValueId id) {
    const int64_t i32 = 6;  // as ONNX numbers types
    return append(old.name + "/Wide", "Cast", {id}, attrs_of({{"to", i32}}));
  }

  /// In i32, along `axes`, which stay.
  Result<ValueId> sum(const Node& old, ValueId id, const std::vector<int64_t>& axes) {
    const ValueId along = ints(old.name + ".axes", axes);
    return append(old.name + "/Sum", "ReduceSum", {TW_TRY(wide(old, id)), along});
  }

  /// sum w, by column of the result.
  Result<ValueId> totals(const Node& old, ValueId w, bool conv) {
    if (!conv) return sum(old, w, {-2});
    std::vector<int64_t> axes, to = {1, shape(w)[0]};
    for (size_t d = 1; d < shape(w).size(); ++d) axes.push_back(static_cast<int64_t>(d));
    to.resize(shape(w).size(), 1);
    const ValueId total = TW_TRY(sum(old, w, axes));
    return append(old.name + "/Reshape", "Reshape", {total, ints(old.name + ".shape", to)});
  }

  /// sum x - a * terms, by row of the result.
  Result<ValueId> windows(const Node& old, ValueId x, ValueId w, ValueId x_zero) {
    Shape one = shape(w);
    int64_t terms = shape(x).back();
    ValueId total = -1;
    if (old.op == "ConvInteger") {
      one[0] = 1, terms = element_count(one);
      Array ones(DType::U8, one);
      for (int64_t i = 0; i < terms; ++i) ones.set_int(i, 1);
      total = TW_TRY(product(old, x, constant(old.name + ".ones", std::move(ones)), x_zero));
    } else {
      total = TW_TRY(sum(old, x, {-1}));
    }
    if (x_zero < 0) return total;
    Array number(DType::I32, {1});
    number.set_int(0, terms);
    return less(old, total, x_zero, constant(old.name + ".terms", std::move(number)));
  }

  /// from - zero * factor
  Result<ValueId> less(const Node& old, ValueId from, ValueId zero, ValueId factor) {
    const ValueId point = TW_TRY(wide(old, zero));
    const ValueId product = TW_TRY(append(old.name + "/Mul", "Mul", {point, factor}));
    return append(old.name + "/Sub", "Sub", {from, product});
  }

  PassContext& context_;
  int moved_ = 0;
};

}  // namespace

Result<Graph> zero_points(const Graph& graph, PassContext& context) {
  return context.zero_points_apart && context.dot_depth ? ZeroPoints(graph, context).run() : graph;
}

}  // namespace tilewright::graph
