#include "tilewright/driver/verify/verify_report.h"

#include <gtest/gtest.h>

namespace tilewright::driver {
namespace {

TEST(VerifyReport, NamesTheNearestCausesAndCountsTheOthers) {
  Row row{"m", "ort", "boxes", {}, {}, {}};
  row.difference.problem = "off by much";
  for (const char* node : {"a", "b", "c", "d", "e"})
    row.known.push_back({std::string("TopK '") + node + "'", true});
  VerifyReport report(false);
  report.add(row, "");
  const std::string text = report.text(false);
  for (const char* named : {"TopK 'a'", "TopK 'b'", "TopK 'c'", "2 more nodes of that kind"})
    EXPECT_NE(text.find(named), std::string::npos) << text;
  EXPECT_EQ(text.find("TopK 'd'"), std::string::npos) << text;
  EXPECT_EQ(report.document()["rows"][0]["known_differences"].size(), 5u);
  EXPECT_FALSE(report.good());
}

TEST(VerifyReport, CountsNothingWhereAllAreNamed) {
  Row row{"m", "ort", "boxes", {}, {}, {}};
  row.difference.problem = "off by much";
  row.known.push_back({"TopK 'a'", true});
  VerifyReport report(false);
  report.add(row, "");
  EXPECT_EQ(report.text(false).find("more nodes"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::driver
