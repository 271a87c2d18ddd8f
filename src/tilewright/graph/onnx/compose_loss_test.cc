#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// One use of a loss: scores [2, 3, 2] unless other ones are given.
struct LossTrial {
  std::string op = "NegativeLogLikelihoodLoss", reduction = "none";
  Shape shape = {2, 3, 2};
  std::vector<double> scores = {-1, -2, -3, -4, -5, -6, -0.5, -1.5, -2.5, -3.5, -4.5, -5.5};
  std::vector<double> labels = {0, 2, 1, 1};
  std::vector<double> weights = {};  ///< empty: none
  std::optional<int64_t> ignored = {};
  DType label_type = DType::I64;

  Shape label_shape() const {
    Shape of = shape;
    of.erase(of.begin() + 1);
    return of;
  }
  onnx::ModelProto model(bool probabilities = false) const {
    onnx::ModelProto m = empty_model(22);
    std::vector<std::string> names = {"scores", "labels"};
    add_input(m, "scores", shape);
    add_input(m, "labels", label_shape(), label_type == DType::I64 ? 7 : 6);
    if (!weights.empty()) {
      names.emplace_back("weights");
      add_input(m, "weights", {static_cast<int64_t>(weights.size())});
    }
    onnx::NodeProto& node = add_node(m, op, names, {"y"});
    if (probabilities) node.add_output("p");
    auto& kind = *node.add_attribute();
    kind.set_name("reduction"), kind.set_type(3), kind.set_s(reduction);
    if (ignored) set_attr(node, "ignore_index", *ignored);
    add_output(m, probabilities ? "p" : "y");
    return m;
  }
  std::vector<double> run(bool probabilities = false) const {
    const auto graph = import(model(probabilities));
    EXPECT_TRUE(graph) << to_string(graph.error());
    if (!graph) return {};
    std::vector<Array> inputs = {Array::of(DType::F32, scores).reshaped(shape),
                                 Array::of(label_type, labels).reshaped(label_shape())};
    if (!weights.empty()) inputs.push_back(Array::of(DType::F32, weights));
    const auto out = run_graph(*graph, inputs);
    EXPECT_TRUE(out) << to_string(out.error());
    return out ? (*out)[0].to_doubles() : std::vector<double>();
  }
};

/// The same by a plain loop.
std::vector<double> plain_loss(const LossTrial& t) {
  const auto classes = static_cast<size_t>(t.shape[1]);
  const size_t inner = t.shape.size() > 2 ? static_cast<size_t>(t.shape[2]) : 1;
  std::vector<double> losses;
  double all_weights = 0;
  for (size_t i = 0; i < t.labels.size(); ++i) {
    const size_t first = i / inner * classes * inner + i % inner;
    const bool ignored = t.ignored && t.labels[i] == static_cast<double>(*t.ignored);
    if (ignored) {
      losses.push_back(0);
      continue;
    }
    double likelihoods = 0;
    for (size_t c = 0; c < classes; ++c) likelihoods += std::exp(t.scores[first + c * inner]);
    const auto label = static_cast<size_t>(t.labels[i]);
    double loss = -t.scores[first + label * inner];
    if (t.op == "SoftmaxCrossEntropyLoss") loss += std::log(likelihoods);
    const double weight = t.weights.empty() ? 1 : t.weights[label];
    losses.push_back(loss * weight);
    all_weights += weight;
  }
  if (t.reduction == "none") return losses;
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  return {t.reduction == "sum" ? sum : sum / all_weights};
}

void expect_plain_loss(const LossTrial& t) {
  const std::vector<double> got = t.run(), want = plain_loss(t);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5) << t.op << " " << t.reduction << " " << i;
}

TEST(Losses, AreThoseOfAPlainLoop) {
  for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
    for (const char* reduction : {"none", "sum", "mean"})
      for (const bool weighted : {false, true})
        for (const int64_t ignored : {-7, 1, 2}) {
          LossTrial t{op, reduction};
          if (weighted) t.weights = {0.5, 2, 3};
          if (ignored >= 0) t.ignored = ignored;
          expect_plain_loss(t);
          t.shape = {4, 3};
          t.label_type = DType::I32;
          expect_plain_loss(t);
        }
}

TEST(Losses, WhatIsIgnoredNeedNotBeAClass) {
  LossTrial t;
  t.labels = {0, -100, -100, 1};
  t.ignored = -100;
  t.scores[1] = t.scores[6] = -kInfinite;  // what stands in for an ignored score
  EXPECT_EQ(t.run(), (std::vector<double>{1, 0, 0, 3.5}));
  t.label_type = DType::I32;
  t.labels[1] = t.labels[2] = 2;
  t.ignored = (int64_t{1} << 32) + 2;  // no label of 32 bits
  EXPECT_EQ(t.run(), (std::vector<double>{1, 6, 4.5, 3.5}));
}

TEST(Losses, WhatIsNoClassIsInfinitelyUnlikely) {
  LossTrial t;
  t.labels = {0, 3, -1, 1};
  EXPECT_EQ(t.run(), (std::vector<double>{1, kInfinite, kInfinite, 3.5}));
}

TEST(Losses, GivesLogarithmsOfProbabilitiesToo) {
  LossTrial t{"SoftmaxCrossEntropyLoss"};
  t.shape = {1, 2};
  t.scores = {0, std::log(3.0)};
  t.labels = {0};
  const std::vector<double> p = t.run(true);
  ASSERT_EQ(p.size(), 2U);
  EXPECT_NEAR(p[0], std::log(0.25), 1e-6);
  EXPECT_NEAR(p[1], std::log(0.75), 1e-6);
}

TEST(Losses, WhatDoesNotFitIsReported) {
  const auto text = [](const LossTrial& t) {
    const auto graph = import(t.model());
    EXPECT_FALSE(graph);
    return graph ? std::string() : to_string(graph.error());
  };
  LossTrial t;
  t.reduction = "max";
  EXPECT_THAT(text(t), HasSubstr("reduction is 'max'"));
  t.reduction = "mean";
  t.weights = {1, 2};
  EXPECT_THAT(text(t), HasSubstr("each of 3 classes"));
  t.weights.clear();
  onnx::ModelProto m = LossTrial().model();
  m.mutable_graph()->mutable_node(0)->set_input(1, "scores");
  const auto graph = import(m);
  ASSERT_FALSE(graph);
  EXPECT_THAT(to_string(graph.error()), HasSubstr("labels [2, 3, 2]"));
}

}  // namespace
}  // namespace tilewright::graph
