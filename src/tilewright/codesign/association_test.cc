// Orders of contraction: each computes the same, and costs what it says.
#include "tilewright/codesign/association.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tilewright/cost/sums/testing/sums.h"

namespace tilewright::codesign {
namespace {

using cost::sums_testing::expect_same_results;
using cost::sums_testing::kMttkrp;
using cost::sums_testing::operation;
using cost::sums_testing::parsed;
using cost::sums_testing::texts;
using ::testing::ElementsAre;

struct ChainCase {
  std::string text;
  size_t factors, orders;
};

TEST(Association, EveryOrderComputesTheSame) {
  const std::vector<ChainCase> cases = {
      {"tensor w(A: i32[3, 5, 2], B: i32[2, 4], C: i32[5, 4]) {\n D[i in 3, j in 4] = sum(k in 5, "
       "l in 2) A[i, k, l] * B[l, j] * C[k, j]\n return D\n}\n",
       3, 3},
      // TTMc in its three-factor form, and as two steps.
      {"tensor w(A: i32[3, 5, 2], B: i32[5, 4], C: i32[2, 7]) {\n D[i in 3, j in 4, n in 7] = "
       "sum(k "
       "in 5, l in 2) A[i, k, l] * B[k, j] * C[l, n]\n return D\n}\n",
       3, 3},
      {"tensor w(A: i32[3, 5, 2], B: i32[5, 4], C: i32[2, 7]) {\n T[i in 3, l in 2, j in 4] = "
       "sum(k "
       "in 5) A[i, k, l] * B[k, j]\n D[i in 3, j in 4, n in 7] = sum(k in 2) T[i, k, j] * C[k, "
       "n]\n "
       "return D\n}\n",
       3, 3},
      // Windows and a loop that one factor has alone.
      {"tensor w(A: i32[6, 3], B: i32[2, 4], C: i32[3, 4], E: i32[5, 2]) {\n D[x in 5, j in 4] = "
       "sum(r in 2, k in 3, u in 2) A[x + r, k] * B[r, j] * C[k, j] * E[x, u]\n return D\n}\n",
       4, 15},
  };
  for (const ChainCase& one : cases) {
    const Func func = parsed(one.text);
    const std::vector<Chain> chains = chains_of(cost::computations_of(func));
    ASSERT_EQ(chains.size(), 1u) << one.text;
    EXPECT_EQ(chains[0].product.factors.size(), one.factors);
    EXPECT_EQ(chains[0].orders.size(), one.orders);
    std::set<std::string> different;
    for (const AssociationOrder& order : chains[0].orders) {
      EXPECT_EQ(order.stages.size(), one.factors - 1);
      for (const cost::Computation& stage : order.stages) EXPECT_EQ(stage.factors.size(), 2u);
      expect_same_results(func, cost::func_of("order", order.stages), order.text);
      different.insert(order.text);
    }
    EXPECT_EQ(different.size(), one.orders);
  }
}

TEST(Association, MttkrpsOrdersHaveTheirCosts) {
  const std::vector<Chain> chains = chains_of(cost::computations_of(operation("mttkrp", kMttkrp)));
  ASSERT_EQ(chains.size(), 1u);
  const int64_t i = 3, j = 4, k = 5, l = 2;
  std::map<std::string, std::pair<int64_t, int64_t>> costs;
  for (const AssociationOrder& order : chains[0].orders)
    costs[order.text] = {order.macs, order.intermediate_bytes};
  const int64_t whole = i * j * k * l;
  EXPECT_EQ(costs.at("(x0 * x1) * x2"), std::pair(whole + i * j * k, i * j * k));
  EXPECT_EQ(costs.at("(x0 * x2) * x1"), std::pair(whole + i * j * l, i * j * l));
  EXPECT_EQ(costs.at("x0 * (x1 * x2)"), std::pair(whole + j * k * l, j * k * l));
  EXPECT_EQ(chains[0].orders[0].text, "(x0 * x2) * x1");
}

TEST(Association, TheOrderOfTheFuncIsKeptUnlessAsked) {
  const cost::Computations as_is = cost::computations_of(operation("mttkrp", kMttkrp));
  EXPECT_EQ(texts(*with_order(as_is, 0)), texts(as_is));
  const cost::Computations first = *with_order(as_is, 1);
  EXPECT_THAT(texts(first), ElementsAre("y0.1[i, j, l] += x0[i, k, l] * x2[k, j]",
                                        "y0[i, j] += y0.1[i, j, l] * x1[l, j]"));
  EXPECT_THAT(first.sums[1].sources, ElementsAre(0, -1));
  EXPECT_EQ(with_order(as_is, 4).error().kind, ErrorKind::Usage);
  const cost::Computations product = cost::computations_of(operation("ttm", kMttkrp));
  EXPECT_EQ(with_order(product, 1).error().kind, ErrorKind::Usage);
}

}  // namespace
}  // namespace tilewright::codesign
