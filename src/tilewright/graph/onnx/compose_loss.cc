// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: how unlikely scores make given classes.
//
// Example: the loss of scores [2, 3] and labels [2] is -GatherElements(scores, labels), summed,
// averaged, or as it is. source: the ONNX operator specification, opset 22.
#include <fmt/format.h>

#include <limits>

#include "tilewright/graph/onnx/composer.h"

namespace tilewright::graph::composing {
namespace {

/// Inputs: scores [batch, class, ...], labels [batch, ...], a weight for each class.
class LossComposer : Composer {
 public:
  using Composer::Composer;

  Ids compose() {
    TW_TRY_STATUS(check());
    ValueId likelihoods = input(0);
    if (node_.op == "SoftmaxCrossEntropyLoss")
      likelihoods = TW_TRY(add("LogSoftmax", {likelihoods}, {{"axis", int64_t{1}}}));
    ValueId labels = input(1), ignored = -1;
    if (ignores_some(labels)) {
      const ValueId marked = number(labels, static_cast<double>(attr("ignore_index", 0)));
      ignored = TW_TRY(add("Equal", {labels, marked}));
      labels = TW_TRY(add("Where", {ignored, number(labels, 0), labels}));  // any class will do
    }
    const ValueId columns = TW_TRY(add("Unsqueeze", {labels, ints({1})}));
    ValueId loss = TW_TRY(add("GatherElements", {likelihoods, columns}, {{"axis", int64_t{1}}}));
    loss = TW_TRY(add("Neg", {TW_TRY(add("Squeeze", {loss, ints({1})}))}));
    ValueId weights = has(2) ? TW_TRY(add("Gather", {input(2), labels})) : ValueId{-1};
    if (weights >= 0) loss = TW_TRY(add("Mul", {loss, weights}));
    if (ignored >= 0) {
      // Chosen, not multiplied: the score that stands in for an ignored one may be infinite.
      const ValueId none = number(loss, 0);
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
  bool ignores_some(ValueId labels) const {
    const int64_t number = attr("ignore_index", 0);
    const bool fits = dtype(labels) != DType::I32 || static_cast<int32_t>(number) == number;
    return node_.attrs.has("ignore_index") && fits;
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
};

}  // namespace

Ids compose_loss(const Node& node, UpgradeContext& context) {
  return LossComposer(node, context).compose();
}

}  // namespace tilewright::graph::composing
