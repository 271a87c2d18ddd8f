// Designs: what is refused, names, and text that reads back.
#include "tilewright/accel/spatial/design.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tilewright/accel/spatial/design_keys.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/base/file.h"
#include "tilewright/base/rng.h"

namespace tilewright::spatial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Design design_of(Unit unit, int rows, int cols, Links links) {
  Design design;
  design.unit = unit;
  design.rows = rows;
  design.cols = cols;
  design.links = links;
  return design;
}

TEST(SpatialDesign, TheDefaultIsLegalAndIsTheFile) {
  EXPECT_THAT(problems(Design()), IsEmpty());
  const Result<std::string> text = read_file(TILEWRIGHT_ROOT_DIR "/hw/spatial.toml");
  ASSERT_TRUE(text);
  const Result<Design> read = read_design(*text, "spatial.toml");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, Design());
  // Nothing of the file is a default by accident: it names every key.
  for (const Key& key : design_keys()) EXPECT_THAT(*text, HasSubstr("\n" + std::string(key.name)));
}

TEST(SpatialDesign, EveryNumberHasARange) {
  for (const Key& key : design_keys()) {
    if (std::holds_alternative<Words>(key.value)) continue;
    for (const double value : {key.low - 1, key.high + 1}) {
      Design design;
      key.set(design, value);
      ASSERT_THAT(placed_problems(design), ::testing::SizeIs(1)) << key.path() << " " << value;
      EXPECT_EQ(placed_problems(design)[0].key, key.path());
    }
    for (const double value : {key.low, key.high}) {
      Design design;
      key.set(design, value);
      EXPECT_THAT(problems(design), IsEmpty());
    }
  }
}

TEST(SpatialDesign, PrimitivesHaveTheirRanges) {
  struct Range {
    const char* key;
    double low, high;
  };
  for (const Range& range : {Range{"rows", 1, 64},
                             {"cols", 1, 64},
                             {"spad_kb", 8, 4096},
                             {"banks", 1, 16},
                             {"bank_bytes", 4, 64},
                             {"local_kb", 1, 1024},
                             {"bus_bytes", 8, 64},
                             {"burst_bytes", 64, 4096}})
    EXPECT_EQ(std::count_if(design_keys().begin(), design_keys().end(),
                            [&](const Key& key) {
                              return key.path() == range.key && key.low == range.low &&
                                     key.high == range.high;
                            }),
              1)
        << range.key;
}

TEST(SpatialDesign, RefusesNumbersThatAreNoPowerOfTwoOrNoNumber) {
  Design design;
  design.bank_bytes = 12;
  design.bus_bytes = 24;
  design.burst_bytes = 100;
  design.clock_mhz = std::nan("");
  EXPECT_THAT(problems(design),
              ElementsAre(HasSubstr("bank_bytes = 12, but must be a power of two in 4..64"),
                          HasSubstr("bus_bytes = 24"), HasSubstr("burst_bytes = 100"),
                          HasSubstr("clock_mhz = nan")));
}

TEST(SpatialDesign, LinksAreThoseOfTheUnit) {
  struct Case {
    Unit unit;
    bool none, systolic, full;
  };
  for (const Case& c : {Case{Unit::Dot, false, false, true}, Case{Unit::Gemv, true, false, true},
                        Case{Unit::Gemm, true, true, true}, Case{Unit::Conv2d, true, false, true}})
    for (const auto& [links, legal] :
         {std::pair(Links::None, c.none), {Links::Systolic, c.systolic}, {Links::Full, c.full}}) {
      EXPECT_EQ(problems(design_of(c.unit, 8, 8, links)).empty(), legal)
          << name(c.unit) << " " << name(links);
      EXPECT_TRUE(has_links(c.unit, usual_links(c.unit)));
    }
  EXPECT_THAT(problems(design_of(Unit::Gemv, 8, 8, Links::Systolic)),
              ElementsAre("links = systolic, but gemv has none or full"));
}

// By hand, for R = 4 rows and C = 6 columns.
TEST(SpatialDesign, StepsReadAndKeepWhatTheirUnitSays) {
  const auto with = [](Unit unit, Dataflow dataflow, Links links) {
    Design design = design_of(unit, 4, 6, links);
    design.dataflow = dataflow;
    return design;
  };
  const Dataflow ws = Dataflow::WeightStationary, os = Dataflow::OutputStationary;
  EXPECT_EQ(step_bytes(with(Unit::Dot, ws, Links::Full)), 48);
  EXPECT_EQ(step_bytes(with(Unit::Gemv, ws, Links::Full)), 24);
  EXPECT_EQ(step_bytes(with(Unit::Gemv, ws, Links::None)), 48);
  EXPECT_EQ(step_bytes(with(Unit::Gemm, ws, Links::Systolic)), 4);
  EXPECT_EQ(step_bytes(with(Unit::Gemm, ws, Links::None)), 24);
  EXPECT_EQ(step_bytes(with(Unit::Gemm, os, Links::Full)), 10);
  EXPECT_EQ(step_bytes(with(Unit::Gemm, os, Links::None)), 48);
  EXPECT_EQ(step_bytes(with(Unit::Conv2d, ws, Links::Full)), 6);
  EXPECT_EQ(step_bytes(with(Unit::Conv2d, ws, Links::None)), 24);

  EXPECT_EQ(sum_parts(with(Unit::Dot, ws, Links::Full)), 1);
  EXPECT_EQ(sum_parts(with(Unit::Gemv, ws, Links::Full)), 24);
  EXPECT_EQ(sum_parts(with(Unit::Gemm, ws, Links::Full)), 6);
  EXPECT_EQ(sum_parts(with(Unit::Gemm, os, Links::Full)), 24);
  EXPECT_EQ(sum_parts(with(Unit::Conv2d, ws, Links::Full)), 4);

  const Needs gemm = smallest_needs(with(Unit::Gemm, ws, Links::None));
  EXPECT_EQ(gemm.spad_bytes, 4 + 24);        // one row of 4, a block of weights
  EXPECT_EQ(gemm.local_bytes, 6 * (4 + 4));  // a sum and a column of weights, six times
  const Needs sums = smallest_needs(with(Unit::Gemm, os, Links::None));
  EXPECT_EQ(sums.spad_bytes, 10);
  EXPECT_EQ(sums.local_bytes, 96);
}

TEST(SpatialDesign, RefusesMemoriesTooSmallForOneStep) {
  Design design = design_of(Unit::Dot, 64, 64, Links::Full);
  design.spad_kb = 8;  // exactly two vectors of 4096
  EXPECT_THAT(problems(design), IsEmpty());
  design.unit = Unit::Gemm;
  design.spad_kb = 8;
  design.dataflow = Dataflow::OutputStationary;
  design.local_kb = 15;
  EXPECT_THAT(problems(design), ElementsAre(HasSubstr("local_kb of 15 KiB: gemm of 64 x 64 needs "
                                                      "for sums and what stays 16 KiB, 1.00 KiB")));
  design.local_kb = 16;
  EXPECT_THAT(problems(design), IsEmpty());
}

TEST(SpatialDesign, NamesAreThoseOfFiles) {
  EXPECT_EQ(name(Unit::Conv2d), "conv2d");
  EXPECT_EQ(name(Dataflow::OutputStationary), "os");
  EXPECT_EQ(name(Links::Full), "full");
}

Design random_design(Rng& rng) {
  Design design;
  for (const Key& key : design_keys()) {
    double value = 0;
    if (const auto* words = std::get_if<Words>(&key.value))
      value = static_cast<double>(rng.below(static_cast<int64_t>(words->words.size())));
    else if (key.power_of_two)
      value = key.low * std::pow(2, static_cast<double>(
                                        rng.below(1 + std::lround(std::log2(key.high / key.low)))));
    else if (key.whole())
      value =
          key.low + static_cast<double>(rng.below(static_cast<int64_t>(key.high - key.low) + 1));
    else
      value = key.low + (key.high - key.low) * static_cast<double>(rng.below(1 << 30)) / (1 << 30);
    key.set(design, value);
  }
  design.name = "d \"" + std::to_string(rng.below(1000)) + "\"'\\";
  return design;
}

TEST(SpatialDesign, TextReadsBack) {
  Rng rng(18);
  int legal = 0;
  for (int n = 0; n < 500; ++n) {
    const Design design = random_design(rng);
    const Result<Design> read = read_design(to_toml(design), "there");
    EXPECT_EQ(read.has_value(), problems(design).empty());
    if (!read) continue;
    ++legal;
    EXPECT_EQ(*read, design) << to_toml(design);
  }
  EXPECT_GT(legal, 100);
}

TEST(SpatialDesign, SaysAllThatIsWrongWithAFileAndWhere) {
  const Result<Design> read = read_design(R"(kind = "spatial"
rows = 100
colls = 3
intrinsic = "conv2"
links = "systolic"
[timing]
read_latency = "16"
burst_gap = -1
)",
                                          "bad.toml");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::Parse);
  const std::string text = to_string(read.error());
  EXPECT_THAT(text, HasSubstr("bad.toml:2:8"));
  EXPECT_THAT(text, HasSubstr("rows = 100, but must be in 1..64"));
  EXPECT_THAT(text, HasSubstr("unknown key `colls`"));
  EXPECT_THAT(text, HasSubstr("did you mean 'cols'?"));
  EXPECT_THAT(text, HasSubstr("did you mean 'conv2d'?"));
  EXPECT_THAT(text, HasSubstr("`timing.read_latency` must be an integer"));
  EXPECT_THAT(text, HasSubstr("bad.toml:8:13"));
  EXPECT_EQ(read.error().others.size(), 4u);
}

TEST(SpatialDesign, ReadableButImpossibleIsInvalid) {
  const std::string text = "kind = \"spatial\"\nintrinsic = \"dot\"\n";
  const Result<Design> read = read_design(text + "links = \"systolic\"\n", "dot.toml");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::Invalid);
  EXPECT_EQ(read.error().place, "dot.toml:3:9");
  const Result<Design> usual = read_design(text, "dot.toml");
  ASSERT_TRUE(usual) << to_string(usual.error());  // its links are those that the unit has
  EXPECT_EQ(usual->links, Links::Full);
}

TEST(SpatialDesign, AFileOfAnotherKindIsRefused) {
  for (const char* text : {"kind = \"dpu\"\n", "kind = 3\n", "rows = 8\n"})
    EXPECT_FALSE(read_design(text, "x")) << text;
}

// Whatever is done to a file, it is read into a legal design or refused with a place.
TEST(SpatialDesign, MutatedFilesAreReadOrRefused) {
  const std::string good = to_toml(Design());
  const std::string pieces[] = {"[",    "]",      "[[",   "\"", "= ", "\n",
                                "-",    "1e999",  "nan",  "{",  "#",  "99999999999999999999",
                                "true", "timing", "\xff", "."};
  Rng rng(7);
  int refused = 0;
  for (int n = 0; n < 3000; ++n) {
    std::string text = good;
    for (int64_t changes = 1 + rng.below(3); changes > 0; --changes) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      if (rng.below(2) == 0)
        text.erase(at, static_cast<size_t>(1 + rng.below(8)));
      else
        text.insert(at, pieces[rng.below(std::size(pieces))]);
    }
    const Result<Design> read = read_design(text, "mutated");
    if (read) {
      EXPECT_THAT(problems(*read), IsEmpty());
      continue;
    }
    ++refused;
    EXPECT_THAT(read.error().place, HasSubstr("mutated"));
    EXPECT_FALSE(read.error().what.empty());
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tilewright::spatial
