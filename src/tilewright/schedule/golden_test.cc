// Every step before and after, and a failing twin for each of its requirements: testdata/*.txt.
// TILEWRIGHT_UPDATE_GOLDEN=1 writes what the steps do now into the files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/schedule/testing/property.h"

namespace tilewright::schedule {
namespace {

/// One program and the steps tried on it. In the file: comment lines, the program, then for each
/// step a line `==== step` and what comes of it, a program or `refused: ` and the reason.
struct GoldenCase {
  std::string file, comment, program;
  std::vector<std::pair<std::string, std::string>> steps;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(text.substr(start, end - start));
  return lines;
}

GoldenCase read_case(const std::string& path) {
  GoldenCase c;
  c.file = path;
  std::string* part = &c.comment;
  const std::string text = *read_file(path);
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("==== ")) {
      c.steps.emplace_back(line.substr(5), "");
      part = &c.steps.back().second;
      continue;
    }
    if (part == &c.comment && !line.starts_with("//")) part = &c.program;
    *part += line + "\n";
  }
  return c;
}

std::vector<GoldenCase> all_cases() {
  std::vector<GoldenCase> cases;
  std::set<std::string> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TILEWRIGHT_SOURCE_DIR) + "/testdata"))
    if (entry.path().extension() == ".txt") paths.insert(entry.path().string());
  for (const std::string& path : paths) cases.push_back(read_case(path));
  return cases;
}

/// What a step makes of the program, as text; checks the meaning on the way.
std::string outcome(const Func& func, const std::string& line, bool in_place) {
  const auto trace = parse_trace(line);
  if (!trace) return "refused: " + to_string(trace.error()) + "\n";
  EXPECT_EQ(print(*trace), line + "\n");
  const auto after = schedule::apply(trace->at(0), func);
  if (!after) return fmt::format("refused: {}: {}\n", after.error().what, after.error().why);
  EXPECT_TRUE(verify(*after, Stage::Scheduled)) << line;
  in_place |= testing::in_place(*trace);
  EXPECT_EQ(testing::difference(func, *after, 3, in_place), "") << line;
  return tilewright::print(*after);
}

TEST(Golden, StepsDoWhatTheFilesSay) {
  const bool update = std::getenv("TILEWRIGHT_UPDATE_GOLDEN") != nullptr;
  for (GoldenCase& c : all_cases()) {
    const auto func = parse_func(c.program);
    ASSERT_TRUE(func) << c.file << ": " << to_string(func.error());
    std::string text = c.comment + c.program;
    const bool in_place = !testing::difference(*func, *func, 3).empty();
    for (const auto& [line, expected] : c.steps) {
      const std::string got = outcome(*func, line, in_place);
      if (!update) {
        EXPECT_EQ(got, expected) << c.file << ": " << line;
      }
      text += "==== " + line + "\n" + got;
    }
    if (update) {
      ASSERT_TRUE(write_file(c.file, text));
    }
  }
}

TEST(Golden, EveryStepIsRefusedSomewhere) {
  std::set<std::string> refused;
  for (const GoldenCase& c : all_cases())
    for (const auto& [line, result] : c.steps)
      if (result.starts_with("refused")) refused.insert(line.substr(0, line.find('(')));
  for (size_t i = 0; i < std::variant_size_v<Step>; ++i)
    EXPECT_TRUE(refused.contains(std::string(testing::kind_name(i)))) << testing::kind_name(i);
}

}  // namespace
}  // namespace tilewright::schedule
