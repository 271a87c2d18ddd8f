// Random program x random legal trace keeps its meaning, over all steps.
#include <gtest/gtest.h>

#include "tilewright/schedule/testing/property.h"

namespace tilewright::schedule {
namespace {

TEST(ScheduleProperty, RandomTracesKeepTheMeaning) {
  const char* env = std::getenv("TILEWRIGHT_SEEDS");
  const uint64_t start = std::getenv("TILEWRIGHT_START") ? std::strtoull(std::getenv("TILEWRIGHT_START"), nullptr, 10) : 1;
  const uint64_t programs = env ? std::strtoull(env, nullptr, 10) : 400;
  testing::Tally tally;
  for (uint64_t seed = start; seed <= programs; ++seed) {
    const std::string wrong = testing::check_program(testing::operator_graphs(), seed, 3, 30, tally);
    ASSERT_TRUE(wrong.empty()) << wrong;
  }
  const std::string report = testing::report(tally);
  for (size_t i = 0; i < tally.accepted.size(); ++i)
    EXPECT_GE(tally.accepted[i], 20) << testing::kind_name(i) << "\n" << report;
  std::printf("%s", report.c_str());
}

TEST(ScheduleProperty, OddProgramsKeepTheirMeaning) {
  const char* env = std::getenv("TILEWRIGHT_SEEDS");
  const uint64_t start = std::getenv("TILEWRIGHT_START") ? std::strtoull(std::getenv("TILEWRIGHT_START"), nullptr, 10) : 1;
  const uint64_t programs = env ? std::strtoull(env, nullptr, 10) : 400;
  testing::Tally tally;
  for (uint64_t seed = start; seed <= programs; ++seed) {
    const std::string wrong = testing::check_program(testing::odd_programs(), seed, 3, 20, tally);
    ASSERT_TRUE(wrong.empty()) << wrong;
  }
  std::printf("%s", testing::report(tally).c_str());
}

}  // namespace
}  // namespace tilewright::schedule
