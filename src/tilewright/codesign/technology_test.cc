// Technologies: what files have to say, and what is refused.
#include "tilewright/codesign/technology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>

#include "tilewright/base/file.h"
#include "tilewright/base/rng.h"

namespace tilewright::codesign {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_text(const std::string& name) {
  const Result<std::string> text = read_file(TILEWRIGHT_ROOT_DIR "/hw/tech/" + name + ".toml");
  EXPECT_TRUE(text);
  return *text;
}

/// `text` with the first `from` replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string errors_of(const std::string& text) {
  const Result<Technology> read = read_technology(text, "t.toml");
  EXPECT_FALSE(read);
  return read ? "" : to_string(read.error());
}

TEST(Technology, TheTableIsInTheOrderOfItsNumbers) {
  size_t at = 0;
  for (const QuantityInfo& info : quantities())
    EXPECT_EQ(static_cast<size_t>(info.quantity), at++) << info.key;
}

TEST(Technology, BuiltInFilesAreReadWhole) {
  EXPECT_THAT(builtin_technologies(), ElementsAre("asic45", "maestro28", "hasco-fpga"));
  for (const std::string& name : builtin_technologies()) {
    const Result<Technology> read = load_technology(name);
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read->name, name);
    for (const QuantityInfo& info : quantities())
      EXPECT_EQ(read->number(info.quantity).source.empty(), info.formula != read->formula);
  }
}

TEST(Technology, SaysWhatItsNumbersRestOn) {
  const Technology maestro = *load_technology("maestro28");
  EXPECT_THAT(maestro.evidence(),
              ElementsAre(std::pair(Evidence::Published, 21), std::pair(Evidence::Fitted, 1)));
  EXPECT_EQ(maestro[Quantity::Lanes], 9);
  EXPECT_THAT(maestro.number(Quantity::BandwidthPerBank).source, HasSubstr("Table II"));
}

TEST(Technology, ANumberWithoutSourceIsAnError) {
  const std::string good = file_text("maestro28");
  EXPECT_THAT(
      errors_of(with(good, ", source = \"maestro\" }", " }")),
      ::testing::AllOf(HasSubstr("`numbers.lanes` has no source"), HasSubstr("t.toml:14:9")));
  EXPECT_THAT(errors_of(with(good, "source = \"maestro\" }", "source = \"maestr\" }")),
              ::testing::AllOf(HasSubstr("`maestr` is not in [sources]"),
                               HasSubstr("did you mean 'maestro'?")));
  EXPECT_THAT(errors_of(with(good, "source = \"maestro\" }", "source = \"\" }")),
              HasSubstr("is not in [sources]"));
  EXPECT_THAT(errors_of(with(good, "maestro = \"MAESTRO cost model", "maestro = \"\" # ")),
              HasSubstr("the source `maestro` must be a text"));
}

TEST(Technology, EveryNumberHasUnitKindAndValue) {
  const std::string good = file_text("maestro28");
  EXPECT_THAT(errors_of(with(good, "unit = \"nJ\"", "unit = \"pJ\"")),
              HasSubstr("`numbers.mac_energy` is in nJ, not in `pJ`"));
  EXPECT_THAT(errors_of(with(good, "unit = \"nJ\", ", "")), HasSubstr("has no unit"));
  EXPECT_THAT(errors_of(with(good, "value = 9, ", "")), HasSubstr("lanes.value` is missing"));
  EXPECT_THAT(errors_of(with(good, "value = 9,", "value = -9,")), HasSubstr("-9"));
  EXPECT_THAT(errors_of(with(good, "value = 9,", "value = nan,")), HasSubstr("nan"));
  EXPECT_THAT(errors_of(with(good, "kind = \"published\"", "kind = \"guessed\"")),
              HasSubstr("`numbers.lanes.kind` cannot be `guessed`"));
  EXPECT_THAT(errors_of(with(good, "kind = \"published\", ", "")),
              HasSubstr("`numbers.lanes.kind` is missing"));
}

TEST(Technology, AllProblemsAreReportedAtOnce) {
  std::string text = with(file_text("maestro28"), "lanes =", "lane =");
  text = with(text, "kind = \"technology\"", "kind = \"space\"");
  const std::string errors = errors_of(text);
  EXPECT_THAT(errors, HasSubstr("`kind` must be"));
  EXPECT_THAT(errors, HasSubstr("`numbers.lanes` is missing"));
  EXPECT_THAT(errors, HasSubstr("unknown key `numbers.lane`"));
  EXPECT_THAT(errors, HasSubstr("did you mean 'lanes'?"));
  // Numbers of another formula are unknown ones.
  EXPECT_THAT(
      errors_of(with(file_text("maestro28"), "formula = \"maestro\"", "formula = \"components\"")),
      HasSubstr("unknown key `numbers.lanes`"));
}

TEST(Technology, UnknownNamesAreExplained) {
  const Result<Technology> read = load_technology("asic54");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::Usage);
  EXPECT_THAT(to_string(read.error()), HasSubstr("did you mean 'asic45'?"));
  EXPECT_EQ(load_technology("/nowhere/t.toml").error().kind, ErrorKind::Io);
}

TEST(Technology, MutatedFilesAreReadOrRefused) {
  const std::string pieces[] = {"[", "]", "\"", "=", "\n", "{", "}", "1e400", "nan", "-", "#", ","};
  const std::string numbers[] = {"-", "1e30", "1e9", "9e99", "0x", "\""};
  Rng rng(3);
  const std::string good = file_text("hasco-fpga");
  int refused = 0;
  for (int n = 0; n < 300; ++n) {
    std::string text = good;
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
    if (const size_t number = text.find("value = ", at); rng.chance(0.3) && number != text.npos)
      text.insert(number + 8, numbers[rng.below(std::size(numbers))]);
    else if (rng.chance(0.5))
      text.erase(at, static_cast<size_t>(1 + rng.below(30)));
    else
      text.insert(at, pieces[rng.below(std::size(pieces))]);
    const Result<Technology> read = read_technology(text, "mutated");
    if (!read) {
      ++refused;
      EXPECT_THAT(read.error().place, HasSubstr("mutated"));
      continue;
    }
    for (const QuantityInfo& info : quantities())
      if (info.formula == read->formula) {
        EXPECT_TRUE((*read)[info.quantity] >= info.low && (*read)[info.quantity] <= info.high)
            << info.key << "\n"
            << text;
      }
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace tilewright::codesign
