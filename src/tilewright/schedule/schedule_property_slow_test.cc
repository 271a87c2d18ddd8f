// The property test at length, from other seeds. TILEWRIGHT_FIRST_SEED moves them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tilewright/schedule/testing/property.h"

namespace tilewright::schedule {
namespace {

uint64_t first_seed() {
  const char* text = std::getenv("TILEWRIGHT_FIRST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1'000'000;
}

void run(const testing::Source& source, uint64_t programs, int traces, int steps) {
  testing::Tally tally;
  for (uint64_t seed = first_seed(); seed < first_seed() + programs; ++seed) {
    const std::string wrong = testing::check_program(source, seed, traces, steps, tally);
    ASSERT_TRUE(wrong.empty()) << wrong;
  }
  std::fputs(testing::report(tally).c_str(), stdout);
}

TEST(SchedulePropertySlow, RandomTracesKeepTheMeaning) {
  run(testing::operator_graphs(), 1000, 4, 40);
}

TEST(SchedulePropertySlow, OddProgramsKeepTheirMeaning) {
  run(testing::odd_programs(), 1000, 3, 30);
}

TEST(SchedulePropertyFull, RandomTracesKeepTheMeaning) {
  run(testing::operator_graphs(), 4000, 4, 40);
}

TEST(SchedulePropertyFull, OddProgramsKeepTheirMeaning) {
  run(testing::odd_programs(), 4000, 3, 30);
}

}  // namespace
}  // namespace tilewright::schedule
