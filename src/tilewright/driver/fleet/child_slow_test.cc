// Measuring children in each sandbox that works here: the compiler, its code and its clock do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/driver/fleet/child.h"
#include "tilewright/ir/text.h"
#include "tilewright/measure/measurer.h"

namespace tilewright::driver {
namespace {

measure::Task doubling(int threads) {
  measure::Task task;
  task.name = "doubling";
  task.func = *parse_func(R"(func f(X: f32[4096], out Y: f32[4096]) {
  for Y.i in 4096 {
    block Y(i: space 4096 = Y.i) {
      Y[i] = X[i] * 2.0 + 1.0
    }
  }
}
)");
  task.target = hw::as_target(hw::host());
  task.threads = threads;
  return task;
}

class MeasuringChild : public testing::TestWithParam<const char*> {};

TEST_P(MeasuringChild, CompilesAndMeasures) {
  const auto children = ChildRunner::create(GetParam());
  if (!children) GTEST_SKIP() << to_string(children.error());
  fleet::Offer offer;
  offer.device = "cpu";
  measure::MeasureOptions options;
  options.worker = {TILEWRIGHT_PROGRAM, "measure-child"};
  options.start = children->measuring(offer);
  options.limit_seconds = 60;
  const auto measurer = measure::start_measurer(options);
  ASSERT_TRUE(measurer) << to_string(measurer.error());
  for (const int threads : {1, 2}) {
    const auto evaluator = (*measurer)->evaluator(doubling(threads));
    ASSERT_TRUE(evaluator) << to_string(evaluator.error());
    const measure::Candidate plain, split{{}, {schedule::Split{"Y.i", 8}}};
    const auto readings = (*evaluator)->evaluate({plain, split, plain});
    for (const measure::Reading& reading : readings) {
      EXPECT_EQ(reading.kind, measure::OutcomeKind::Ok) << reading.reason;
      EXPECT_GT(reading.cost, 0);
      EXPECT_GE(reading.readings, 2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MeasuringChild, testing::Values("bwrap", "landlock", "none"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tilewright::driver
