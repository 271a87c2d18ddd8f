// The page of a search of very many designs.
#include "tilewright/driver/codesign/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::driver {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// As many designs, with less latency the more power; one in 500 is on the front, the others are
/// half as much above it in everything.
SearchResult result_of(size_t designs) {
  SearchResult result;
  result.level = codesign::kModelLevel;
  result.of_default = {1e6, 1e2, 1e6};
  for (size_t i = 0; i < designs; ++i) {
    const double place = 1e5 + static_cast<double>(i), behind = i % 500 == 250 ? 1 : 1.5;
    codesign::StudyRow row;
    // The number as three digits, so that no two points are equal.
    row.trial.point = {static_cast<int>(i % 32), static_cast<int>(i / 32 % 32),
                       static_cast<int>(i / 1024)};
    row.trial.outcome.objectives = {1e9 / place * behind, place * behind, 1e6 * behind};
    row.level = codesign::kModelLevel;
    result.rows.push_back(std::move(row));
  }
  result.front = front_of(result.rows);
  return result;
}

TEST(CodesignReport, OfManyDesignsTheFrontAndSomeOthersAreDrawn) {
  codesign::Workload workload;
  workload.name = "layers";
  const codesign::DesignSpace space = *codesign::read_space(
      "kind = \"space\"\nname = \"s\"\nabout = \"for tests\"\ntechnology = \"asic45\"\n"
      "[parameters]\nrows = { from = 1, to = 32 }\ncols = { from = 1, to = 32 }\n"
      "banks = { from = 1, to = 8 }\n[fixed]\nintrinsic = \"gemm\"\nspad_kb = 256\n"
      "local_kb = 64\nbank_bytes = 16\nbus_bytes = 8\nburst_bytes = 2048\n",
      "s.toml");
  const SearchSubject subject{
      "",
      workload,
      space,
      {{codesign::Objective::Latency, codesign::Objective::Power, codesign::Objective::Area}, {}}};
  const SearchResult few = result_of(1000), many = result_of(8000);
  ASSERT_EQ(few.front.size(), 2u);
  ASSERT_EQ(many.front.size(), 16u);
  const std::string all = search_page(subject, few), some = search_page(subject, many);
  EXPECT_THAT(all, ::testing::Not(::testing::HasSubstr("one in ")));
  EXPECT_THAT(some, ::testing::HasSubstr("of the 7984 other designs one in 3."));
  // Three plots of two objectives, and a line for each design.
  EXPECT_GE(count(all, "<circle"), 3 * few.rows.size());
  EXPECT_LT(count(some, "<circle"), 3 * (3000 + 100));
  EXPECT_GE(count(some, "<circle"), 3 * (8000 / 3 + many.front.size()));
  EXPECT_GE(count(some, "<path"), 8000 / 3 + many.front.size());
}

}  // namespace
}  // namespace tilewright::driver
