// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: how unlikely scores make given classes.
//
// Example: the loss of scores [2, 3] and labels [2] is the negative of the score in the label's
// column, summed, averaged, or as it is. Columns are compared with the label rather than gathered,
// so that any number may be a label: 255, say, for what is ignored. source: the ONNX operator
// specification, opset 22.
#include <fmt/format.h>

#include <limits>

#include "tilewright/graph/onnx/composer.h"

namespace tilewright::graph::composing {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Inputs: scores [batch, class, ...], labels [batch, ...], a weight for each class.
class LossComposer : Composer {
 public:
  using Composer::Composer;

  Ids compose() {
    TW_TRY_STATUS(check());
    ValueId likelihoods = input(0);
    if (node_.op == "SoftmaxCrossEntropyLoss")
      likelihoods = TW_TRY(add("LogSoftmax", {likelihoods}, {{"axis", int64_t{1}}}));
    is_label_ = TW_TRY(add("Equal", {TW_TRY(add("Unsqueeze", {input(1), ints({1})})), classes()}));
    // What is no class has probability 0, and an infinite loss.
    const ValueId likely = TW_TRY(of_label(likelihoods, "ReduceMax", -kInfinite));
    ValueId loss = TW_TRY(add("Neg", {likely})), weights = -1;
    if (has(2)) {
      Ints to(shape(input(0)).size(), 1);
      to[1] = -1;
      weights = TW_TRY(of_label(TW_TRY(reshaped(input(2), to)), "ReduceSum", 0));
      loss = TW_TRY(add("Mul", {loss, weights}));
    }
    if (ignores_some()) {
      const ValueId mark = number(input(1), static_cast<double>(attr("ignore_index", 0)));
      const ValueId ignored = TW_TRY(add("Equal", {input(1), mark})), none = number(loss, 0);
      loss = TW_TRY(add("Where", {ignored, none, loss}));
      weights = TW_TRY(add("Where", {ignored, none, weights < 0 ? number(loss, 1) : weights}));
    }
    return std::vector<ValueId>{TW_TRY(reduced(loss, weights)), likelihoods};
  }

 private:
  Status check() {
    if (!has(0) || !has(1)) return wrong("it needs scores and labels");
    const Shape &scores = shape(input(0)), &labels = shape(input(1));
    Shape fits = scores;
    if (scores.size() > 1) fits.erase(fits.begin() + 1);
    if (scores.size() < 2 || labels != fits)
      return wrong(
          "the labels have the shape of the scores without the axis of classes, the second",
          fmt::format("scores {}, labels {}", to_string(scores), to_string(labels)));
    if (has(2) && shape(input(2)) != Shape{scores[1]})
      return wrong(fmt::format("there is a weight for each of {} classes", scores[1]),
                   fmt::format("the weights are {}", to_string(shape(input(2)))));
    return {};
  }

  /// A number that is none of the labels' type is no label.
  bool ignores_some() const {
    const int64_t number = attr("ignore_index", 0);
    const bool fits = dtype(input(1)) != DType::I32 || static_cast<int32_t>(number) == number;
    return node_.attrs.has("ignore_index") && fits;
  }

  /// 0, 1, ... along the axis of classes.
  ValueId classes() {
    Shape of(shape(input(0)).size(), 1);
    of[1] = shape(input(0))[1];
    Array array(dtype(input(1)), of);
    for (int64_t i = 0; i < of[1]; ++i) array.set_int(i, i);
    return context_.constant(std::move(array));
  }

  /// The value in the column of the label, `none` if there is no such column.
  Id of_label(ValueId values, const char* combine, double none) {
    const ValueId chosen = TW_TRY(add("Where", {is_label_, values, number(values, none)}));
    return add(combine, {chosen, ints({1})}, {{"keepdims", int64_t{0}}});
  }

  Id reduced(ValueId loss, ValueId weights) {
    const std::string kind = node_.attrs.get_string("reduction", "mean");
    const AttrMap all = {{"keepdims", int64_t{0}}};
    if (kind == "none") return loss;
    if (kind == "sum") return add("ReduceSum", {loss}, all);
    if (kind != "mean")
      return wrong(fmt::format("reduction is '{}'", kind), "expected none, sum or mean");
    if (weights < 0) return add("ReduceMean", {loss}, all);
    return add("Div",
               {TW_TRY(add("ReduceSum", {loss}, all)), TW_TRY(add("ReduceSum", {weights}, all))});
  }

  ValueId is_label_ = -1;  ///< [batch, class, ...]
};

}  // namespace

Ids compose_loss(const Node& node, UpgradeContext& context) {
  return LossComposer(node, context).compose();
}

}  // namespace tilewright::graph::composing
