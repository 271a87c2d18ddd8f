#include "tilewright/base/toml_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<toml::table> parsed(std::string_view text) { return parse_toml(text, "file", "a fix"); }

TEST(Toml, CharactersBeyondAsciiAreInQuotesAndComments) {
  const auto table = parsed(
      "\xef\xbb\xbf# \u00e9 'it\n"
      "a = \"\u00e9 \\\" \u00e9\" # \u00e9\n"
      "b = '\u00e9 \\'\n"
      "c = \"\"\"\n\u00e9 \" \u00e9\"\"\"\"\n"
      "d = '''\u00e9\n\u00e9'''\n"
      "'\u00e9' = 1\n");
  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_EQ((*table)["a"].value<std::string>(), "\u00e9 \" \u00e9");
  EXPECT_EQ(table->size(), 5u);
}

// Of a file of another kind every other key would be unknown: that is all that is said.
TEST(Toml, TheKindOfAFile) {
  const auto refusal = [](const char* text, bool needed) {
    const toml::table top = *parse_toml(text, "f", "");
    TomlProblems problems("f");
    const Status status = TomlTable(top, "", problems).check_kind("vta", needed, "look there");
    return status ? std::string() : to_string(status.error());
  };
  EXPECT_EQ(refusal("kind = \"vta\"", true), "");
  EXPECT_EQ(refusal("x = 1", false), "");
  EXPECT_THAT(refusal("x = 1", true), HasSubstr("`kind` must be \"vta\""));
  EXPECT_THAT(
      refusal("x = 1\nkind = \"dpu\"", false),
      AllOf(HasSubstr("f:2"), HasSubstr("must be \"vta\", not \"dpu\""), HasSubstr("look there")));
  EXPECT_THAT(refusal("kind = 3", false), HasSubstr("f:1"));
}

TEST(Toml, ElsewhereTheyAreRefusedWithTheirPlace) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"\u00e9 = 1", "file:1:1"},           {"a = 1\nb = \u00e9", "file:2:5"},
      {"a = 1 \u3000", "file:1:7"},         {"a = \"x\" \u00e9", "file:1:9"},
      {"a = 2\"\u00e9\"", "file:1:6"},      {"a = '''\nx''' \u00e9", "file:2:6"},
      {"a = \"x\nb\u00e9 = 1", "file:1:7"},
  };
  for (const auto& [text, place] : cases) {
    const auto table = parsed(text);
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().place, place) << text;
  }
}

TEST(Toml, HiddenLineEndsBeforeThemAreRefused) {
  for (const char* text : {"a = \"\"\"x\\\n\u00e9\"\"\"", "a = \"\"\"x\\ \n\u00e9\"\"\""})
    EXPECT_FALSE(parsed(text)) << text;
  EXPECT_TRUE(parsed("a = \"\"\"x\\\ny\"\"\""));
}

TEST(Toml, TextsThatTheLibraryEndsTheProgramForAreRefused) {
  for (const char* text : {"[=]", "\n [[ \x01", "[.a]", "[[,", "[ #", "[\n", "[[[a]]]"})
    EXPECT_FALSE(parsed(text)) << text;
}

}  // namespace
}  // namespace tilewright
