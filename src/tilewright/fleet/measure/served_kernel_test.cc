#include "tilewright/fleet/measure/served_kernel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/ir/text.h"
#include "tilewright/measure/target_text.h"

namespace tilewright::fleet {
namespace {

using testing::HasSubstr;

std::string doubling(const std::string& extent) {
  return fmt::format(R"(func f(X: f32[{0}], out Y: f32[{0}]) {{
  for Y.i in {0} {{
    block Y(i: space {0} = Y.i) {{
      Y[i] = X[i] * 2.0
    }}
  }}
}}
)",
                     extent);
}

MeasuredKernel kernel(const hw::Target& target) {
  return {doubling("64"), measure::print_target(target), 1};
}

TEST(ServedKernel, IsForThisDevice) {
  const auto here = served_task(kernel(hw::as_target(hw::host())), ServedBy::Processor);
  ASSERT_TRUE(here) << to_string(here.error());
  EXPECT_EQ(*operand_bytes(here->func), 2 * 64 * 4);
  EXPECT_FALSE(served_task(kernel(hw::as_target(hw::host())), ServedBy::Gpu));
  hw::CpuTarget more = hw::host();
  more.features.push_back("no-such-feature");
  const auto lacking = served_task(kernel(hw::as_target(more)), ServedBy::Processor);
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().kind, ErrorKind::Device);
  EXPECT_THAT(lacking.error().why, HasSubstr("no-such-feature"));
  // Behind a runner: what features its processor has, it shows itself.
  EXPECT_TRUE(served_task(kernel(hw::as_target(more)), ServedBy::Runner, hw::host().triple));
  const auto other = served_task(kernel(hw::as_target(more)), ServedBy::Runner, "riscv64-linux");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().why, HasSubstr("the runner for riscv64-linux"));
  MeasuredKernel broken = kernel(hw::as_target(hw::host()));
  broken.func = "func f(";
  EXPECT_FALSE(served_task(broken, ServedBy::Processor));
  broken = kernel(hw::as_target(hw::host()));
  broken.target = "{}";
  EXPECT_FALSE(served_task(broken, ServedBy::Processor));
}

TEST(ServedKernel, SizesHaveLimits) {
  for (const char* extent : {"1000000000", "4611686018427387904", "9223372036854775807"}) {
    const auto func = parse_func(doubling(extent));
    if (!func) continue;  // refused earlier
    const auto bytes = operand_bytes(*func);
    ASSERT_FALSE(bytes) << extent;
    EXPECT_EQ(bytes.error().kind, ErrorKind::Limit);
  }
  EXPECT_TRUE(operand_bytes(*parse_func(doubling("1000000"))));
}

TEST(ServedKernel, NumbersThatNobodyMeasuredAreLost) {
  using measure::OutcomeKind;
  const measure::Reading good{OutcomeKind::Ok, "", 10, 9, .1, 7, 8};
  const ItemResult result = item_of(4, good);
  EXPECT_EQ(result.item, 4);
  EXPECT_EQ(result.outcome, "ok");
  EXPECT_EQ(result.cost, 10);
  EXPECT_EQ(result.least, 9);
  EXPECT_EQ(result.readings, 7);
  EXPECT_EQ(result.fastest, 8);
  for (const double wrong : {0., -1., std::nan(""), HUGE_VAL}) {
    measure::Reading reading = good;
    reading.cost = wrong;
    EXPECT_EQ(item_of(0, reading).outcome, "lost") << wrong;
  }
  measure::Reading reading = good;
  reading.least = 11;
  EXPECT_EQ(item_of(0, reading).outcome, "lost");
  reading = good;
  reading.spread = std::nan("");
  EXPECT_EQ(item_of(0, reading).outcome, "lost");
  const ItemResult crash = item_of(1, {OutcomeKind::Crash, "bad\x01\xff", 5, 5, 5, 5});
  EXPECT_EQ(crash.outcome, "crash");
  EXPECT_EQ(crash.reason, "bad??");
  EXPECT_EQ(crash.cost, 0);
  EXPECT_LE(shown(std::string(100'000, 'x')).size(), 4000u);
}

}  // namespace
}  // namespace tilewright::fleet
