#include "tilewright/cost/loop_tree_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/check.h"
#include "tilewright/ir/text.h"
#include "tilewright/schedule/step.h"

namespace tilewright::cost {
namespace {

/// A product under a random tiling, and a cost that is a rule about its loops: vectors of 16 are
/// best, long inner loops of the sum are good, a strided innermost loop is bad.
struct Sample {
  std::vector<double> tree;
  double cost = 0;
};

Func product() {
  const auto parsed = parse_func(R"(func product(A: f32[64,64], B: f32[64,64], out C: f32[64,64]) {
  for C.init.i in 64, C.init.j in 64 {
    block C.init(i: space 64 = C.init.i, j: space 64 = C.init.j) {
      C[i, j] = 0.0
    }
  }
  for C.i in 64, C.j in 64, C.k in 64 {
    block C(i: space 64 = C.i, j: space 64 = C.j, k: reduce 64 = C.k) {
      C[i, j] += A[i, k] * B[k, j]
    }
  }
})");
  TW_CHECK(parsed.has_value());
  return *parsed;
}

Sample sample(const Func& func, Rng& rng) {
  using namespace schedule;
  const int64_t i = 1LL << rng.below(7), j = 1LL << rng.between(1, 6), k = 1LL << rng.below(7);
  const bool columns_inside = rng.chance(0.7);
  Trace trace = {Split{"C.i", i}, Split{"C.j", j}, Split{"C.k", k}};
  Names order = {"C.i.o", "C.j.o", "C.k.o", "C.k.i", "C.i.i", "C.j.i"};
  if (!columns_inside) std::swap(order[4], order[5]);
  trace.push_back(Reorder{order});
  const auto scheduled = schedule::replay(func, trace);
  TW_CHECK(scheduled.has_value(), "{}", to_string(scheduled.error()));
  const double lanes = std::abs(std::log2(static_cast<double>(j)) - 4);
  const double depth = 6 - std::log2(static_cast<double>(k));
  return {loop_tree(*scheduled), std::exp2(lanes + 0.3 * depth + (columns_inside ? 0 : 2))};
}

double loop_tree_model_pairs_in_order(const std::vector<double>& scores,
                                      const std::vector<double>& costs) {
  double right = 0, pairs = 0;
  for (size_t i = 0; i < costs.size(); ++i)
    for (size_t j = 0; j < costs.size(); ++j) {
      if (!(costs[i] < costs[j])) continue;
      right += scores[i] > scores[j] ? 1 : 0;
      ++pairs;
    }
  return right / pairs;
}

TEST(LoopTreeModelSlow, LearnsARankingFromLoopsAlone) {
  const Func func = product();
  Rng rng(5);
  std::vector<std::vector<double>> seen, unseen;
  std::vector<double> costs, unseen_costs;
  for (int n = 0; n < 300; ++n) {
    Sample s = sample(func, rng);
    (n < 200 ? seen : unseen).push_back(std::move(s.tree));
    (n < 200 ? costs : unseen_costs).push_back(s.cost);
  }
  costs[0] = search::kInvalid;  // known not to work: only slower than all others
  const auto model = loop_tree_model(), again = loop_tree_model();
  for (int fits = 0; fits < 4; ++fits) model->fit(seen, costs), again->fit(seen, costs);
  EXPECT_GT(loop_tree_model_pairs_in_order(model->score(unseen), unseen_costs), 0.9);
  EXPECT_EQ(model->score(unseen), again->score(unseen));
  // What it learned is not there by chance.
  EXPECT_LT(loop_tree_model_pairs_in_order(loop_tree_model()->score(unseen), unseen_costs), 0.8);
}

TEST(LoopTreeModel, LearnsNothingFromEqualCosts) {
  const Func func = product();
  Rng rng(5);
  const std::vector<std::vector<double>> trees = {sample(func, rng).tree, sample(func, rng).tree};
  const auto model = loop_tree_model();
  const std::vector<double> before = model->score(trees);
  model->fit(trees, {3, 3});
  EXPECT_EQ(model->score(trees), before);
  model->fit({}, {});
  EXPECT_TRUE(model->score({}).empty());
}

}  // namespace
}  // namespace tilewright::cost
