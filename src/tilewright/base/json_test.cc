#include "tilewright/base/json.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(JsonText, KeepsOrTellsWhatIsNoJson) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": [2]})").dump(), R"({"a":[2],"b":1})");
  EXPECT_EQ(parse_ordered_json(R"({"b": 1, "a": [2]})").dump(), R"({"b":1,"a":[2]})");
  EXPECT_THROW(parse_json("{"), nlohmann::json::parse_error);
  EXPECT_THROW(parse_ordered_json(""), nlohmann::json::parse_error);
  EXPECT_TRUE(parse_json("{", std::nothrow).is_discarded());
  EXPECT_TRUE(parse_ordered_json("", std::nothrow).is_discarded());
}

TEST(JsonText, WritesWhatIsNoUtf8) {
  const nlohmann::ordered_json json = {{"name", "a\xFF"}};
  EXPECT_EQ(json_text(json), "{\"name\":\"a\xEF\xBF\xBD\"}");
  EXPECT_EQ(json_text(nlohmann::json(json), 1), "{\n \"name\": \"a\xEF\xBF\xBD\"\n}");
}

}  // namespace
}  // namespace tilewright
