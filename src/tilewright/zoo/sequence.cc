// Networks over tokens.
#include <cmath>

#include "tilewright/zoo/net.h"

namespace tilewright::zoo {

// source: Zaremba et al. (2014), medium model: 2 layers of 650, vocabulary of 10 000.
graph::Graph lstm_lm(const Options& options) {
  constexpr int64_t kHidden = 650, kVocabulary = 10000;
  Net net("lstm_lm", options);
  const ValueId tokens = net.input("tokens", {options.size, options.batch}, DType::I64);
  ValueId x = net.node("Gather", {net.weights({kVocabulary, kHidden}, 1.0), tokens});
  const double deviation = 1.5 / std::sqrt(static_cast<double>(kHidden));
  std::vector<ValueId> outputs;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string suffix = std::to_string(layer);
    const ValueId h = net.input("h" + suffix, {1, options.batch, kHidden});
    const ValueId c = net.input("c" + suffix, {1, options.batch, kHidden});
    const std::vector<ValueId> y = net.nodes("LSTM",
                                             {x, net.weights({1, 4 * kHidden, kHidden}, deviation),
                                              net.weights({1, 4 * kHidden, kHidden}, deviation),
                                              net.weights({1, 8 * kHidden}, 0.05), -1, h, c},
                                             {{"hidden_size", kHidden}}, 3);
    x = net.node("Squeeze", {y[0], net.ints({1})});
    outputs.insert(outputs.end(), {y[1], y[2]});
  }
  // Hidden states lie within (-1, 1), so the projection is scaled up to keep logits of size 1.
  const ValueId logits =
      net.node("MatMul", {x, net.weights({kHidden, kVocabulary}, 4 / std::sqrt(1.0 * kHidden))});
  outputs.insert(outputs.begin(), net.add(logits, net.weights({kVocabulary}, 0.1)));
  return net.finish(outputs);
}

// source: Devlin et al. (2018), base: 12 layers, hidden 768, 12 heads, vocabulary 30 522.
graph::Graph bert_base(const Options& options) {
  constexpr int64_t kHidden = 768, kHeads = 12, kInner = 3072, kVocabulary = 30522;
  Net net("bert_base", options);
  const int64_t batch = options.batch, length = options.size;
  const ValueId ids = net.input("input_ids", {batch, length}, DType::I64);
  const ValueId mask = net.input("attention_mask", {batch, length});
  auto dense = [&](ValueId x, int64_t out) {
    const double deviation = 1 / std::sqrt(static_cast<double>(net.shape(x).back()));
    const ValueId y = net.node("MatMul", {x, net.weights({net.shape(x).back(), out}, deviation)});
    return net.add(y, net.weights({out}, 0.05));
  };
  auto norm = [&](ValueId x) {
    Array ones(DType::F32, {kHidden});
    for (float& value : ones.as<float>()) value = 1;
    return net.node("LayerNormalization",
                    {x, net.constant(std::move(ones)), net.weights({kHidden}, 0.05)},
                    {{"epsilon", 1e-12}});
  };
  auto heads = [&](ValueId x, const Ints& order) {
    x = net.node("Reshape", {x, net.ints({batch, length, kHeads, kHidden / kHeads})});
    return net.node("Transpose", {x}, {{"perm", order}});
  };
  auto gelu = [&](ValueId x) {
    const ValueId e = net.node("Erf", {net.node("Div", {x, net.scalar(std::sqrt(2.0))})});
    return net.node("Mul", {net.node("Mul", {x, net.add(e, net.scalar(1))}), net.scalar(0.5)});
  };
  ValueId x = net.node("Gather", {net.weights({kVocabulary, kHidden}, 1.0), ids});
  x = norm(net.add(x, net.weights({1, length, kHidden}, 0.5)));
  // 0 where attended, -10000 where masked.
  ValueId bias = net.node("Sub", {net.scalar(1), mask});
  bias = net.node("Mul", {bias, net.scalar(-10000)});
  bias = net.node("Unsqueeze", {bias, net.ints({1, 2})});
  for (int layer = 0; layer < 12; ++layer) {
    const ValueId q = heads(dense(x, kHidden), {0, 2, 1, 3});
    const ValueId k = heads(dense(x, kHidden), {0, 2, 3, 1});
    const ValueId v = heads(dense(x, kHidden), {0, 2, 1, 3});
    ValueId scores = net.node("Div", {net.node("MatMul", {q, k}), net.scalar(8)});
    scores = net.softmax(net.add(scores, bias));
    ValueId y =
        net.node("Transpose", {net.node("MatMul", {scores, v})}, {{"perm", Ints{0, 2, 1, 3}}});
    y = net.node("Reshape", {y, net.ints({batch, length, kHidden})});
    x = norm(net.add(x, dense(y, kHidden)));
    x = norm(net.add(x, dense(gelu(dense(x, kInner)), kHidden)));
  }
  return net.finish({x});
}

}  // namespace tilewright::zoo
