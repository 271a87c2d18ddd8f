// Every method by its name, on a space of schedules, with the model of the machine as judge.
#include "tilewright/tune/methods.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tilewright/search/searchers.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::tune {
namespace {

constexpr int kTrials = 64;

measure::Task methods_product() {
  measure::Task task;
  task.name = "product";
  const auto call = tensor::workload_call("gemm", {{"batch", 1}, {"m", 64}, {"n", 96}, {"k", 80}});
  EXPECT_TRUE(call) << to_string(call.error());
  const auto func = tensor::op_func(*call);
  EXPECT_TRUE(func) << to_string(func.error());
  task.func = *func;
  task.target = hw::as_target(hw::host());
  return task;
}

class Methods : public testing::TestWithParam<std::string> {};

TEST_P(Methods, SearchesSchedules) {
  const measure::Task task = methods_product();
  const auto space = tiling_space(task);
  auto searcher = make_searcher(GetParam(), *space, task, 3);
  if (!searcher && searcher.error().kind == ErrorKind::Unsupported)
    GTEST_SKIP() << searcher.error().what;
  ASSERT_TRUE(searcher) << to_string(searcher.error());
  search::Budget budget;
  budget.trials = kTrials;
  const auto cost = [&](const std::vector<search::Point>& points) {
    std::vector<search::Evaluation> outcomes;
    for (const search::Point& point : points) outcomes.push_back({space->prior(point), ""});
    return outcomes;
  };
  const search::RunResult found = search::run(**searcher, cost, budget);
  ASSERT_EQ(found.trials.size(), static_cast<size_t>(kTrials));
  std::set<search::Point> points;
  std::vector<double> first, last;
  for (const search::Trial& trial : found.trials) {
    EXPECT_TRUE(points.insert(trial.point).second) << "the same point twice";
    (points.size() <= kTrials / 4 ? first : last).push_back(trial.outcome.cost);
  }
  const auto median = [](std::vector<double>& costs) {
    std::nth_element(costs.begin(), costs.begin() + costs.size() / 2, costs.end());
    return costs[costs.size() / 2];
  };
  const double begin = median(first), end = median(last);
  ASSERT_TRUE(std::isfinite(*std::min_element(last.begin(), last.end())));
  // What learns is better off with its later trials; `ours` knows the judge and begins there.
  if (GetParam() == "xgb") {
    EXPECT_LT(end, begin);
  }
}

/// The methods whose model is made of trees, or the others: under a sanitizer, growing trees takes
/// twenty times as long as all that the others do.
std::vector<std::string> methods_with_trees(bool trees) {
  std::vector<std::string> methods = search_methods();
  std::erase_if(methods, [&](const std::string& method) {
    return (method == "xgb" || method == "tree") != trees;
  });
  return methods;
}

std::string method_name(const testing::TestParamInfo<std::string>& method) {
  std::string name = method.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Quick, Methods, testing::ValuesIn(methods_with_trees(false)), method_name);
INSTANTIATE_TEST_SUITE_P(TreesSlow, Methods, testing::ValuesIn(methods_with_trees(true)),
                         method_name);

TEST(MethodNames, UnknownOnesGetTheNearest) {
  const measure::Task task = methods_product();
  const auto space = tiling_space(task);
  const auto made = make_searcher("xbg", *space, task, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Usage);
  EXPECT_NE(made.error().why.find("xgb"), std::string::npos) << made.error().why;
}

}  // namespace
}  // namespace tilewright::tune
