// Spaces: how many points they have, what points mean, and what files are refused.
#include "tilewright/codesign/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/codesign/area.h"

namespace tilewright::codesign {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

DesignSpace space(const std::string& name) {
  Result<DesignSpace> read = load_space(name);
  EXPECT_TRUE(read) << to_string(read.error());
  return std::move(*read);
}

/// A small space; `tables` go into it as they are.
std::string small(const std::string& head, const std::string& parameters,
                  const std::string& fixed = "") {
  return "kind = \"space\"\nname = \"s\"\ntechnology = \"asic45\"\n" + head + "[parameters]\n" +
         parameters + "[fixed]\nintrinsic = \"gemm\"\nspad_kb = 256\nlocal_kb = 64\n" +
         "bus_bytes = 8\nburst_bytes = 2048\n" + fixed;
}

std::string space_errors(const std::string& text) {
  const Result<DesignSpace> read = read_space(text, "s.toml");
  EXPECT_FALSE(read) << text;
  if (!read) {
    EXPECT_EQ(read.error().kind, ErrorKind::Parse);
  }
  return read ? "" : to_string(read.error());
}

TEST(DesignSpaceSlow, HascosSpacesHaveAsManyPointsAsItsCode) {
  for (const auto& [name, count] :
       {std::pair("hasco-gemm", 1728), {"hasco-gemv", 864}, {"hasco-truth", 6728}}) {
    const DesignSpace read = space(name);
    EXPECT_EQ(read.points().size(), count) << name;
    EXPECT_EQ(read.legal_points(), count) << name;
  }
  for (const char* name : {"hasco-conv2d", "hasco-dot"}) {
    const DesignSpace read = space(name);
    EXPECT_EQ(read.points().size(), 968832) << name;
    EXPECT_EQ(read.legal_points(), 968832) << name;
    EXPECT_EQ(read.legal_points(1000), std::nullopt);
  }
}

TEST(DesignSpace, HascosUnitsHaveTheirLinks) {
  const auto links = [](const char* name) {
    const DesignSpace read = space(name);
    return read.design(search::Point(read.points().decisions().size(), 0)).links;
  };
  EXPECT_EQ(links("hasco-gemm"), spatial::Links::Systolic);
  for (const char* name : {"hasco-gemv", "hasco-conv2d", "hasco-dot", "hasco-truth"})
    EXPECT_EQ(links(name), spatial::Links::Full) << name;
}

TEST(DesignSpace, PointsOfGemmAreDesignsByHand) {
  const DesignSpace gemm = space("hasco-gemm");
  std::vector<std::string> names;
  for (const search::Decision& decision : gemm.points().decisions()) names.push_back(decision.name);
  EXPECT_THAT(names, ElementsAre("dataflow", "rows", "spad_kb", "banks", "local_kb", "bus_bytes",
                                 "burst_bytes"));
  spatial::Design wanted;
  wanted.name = "hasco-gemm";
  wanted.dataflow = spatial::Dataflow::OutputStationary;
  wanted.rows = wanted.cols = 32;
  wanted.spad_kb = 512;
  wanted.banks = 3;
  wanted.local_kb = 64;
  wanted.bus_bytes = 16;
  wanted.burst_bytes = 64;
  EXPECT_EQ(gemm.design({1, 2, 2, 2, 0, 1, 0}), wanted);
  EXPECT_EQ(gemm.points().text({1, 2, 2, 2, 0, 1, 0}),
            "dataflow=os rows=32 spad_kb=512 banks=3 local_kb=64 bus_bytes=16 burst_bytes=64");
  // Sizes are seen by their logarithm, words one by one.
  EXPECT_EQ(gemm.points().features({1, 2, 2, 2, 0, 1, 0})[1], 1);
  EXPECT_EQ(gemm.points().features({1, 2, 2, 2, 0, 1, 0})[2], 5);
}

TEST(DesignSpace, EveryPointIsVisitedOnceAndIsAnotherDesign) {
  for (const char* name : {"hasco-gemm", "edge"}) {
    const DesignSpace read = space(name);
    std::set<search::Point> seen;
    std::set<Values> designs;
    read.for_each([&](const search::Point& point) {
      EXPECT_EQ(read.points().canonical(point), point);
      seen.insert(point);
      designs.insert(read.values(point));
      return true;
    });
    EXPECT_EQ(static_cast<double>(seen.size()), read.points().size()) << name;
    EXPECT_EQ(seen.size(), designs.size()) << name;
  }
}

TEST(DesignSpace, OurSpacesCanBeBuiltAndHoldHascosChoices) {
  EXPECT_THAT(builtin_spaces(),
              ElementsAre("edge", "cloud", "hasco-gemm", "hasco-gemv", "hasco-conv2d", "hasco-dot",
                          "hasco-truth", "vta", "gemmini"));
  struct Choice {
    const char* space;
    spatial::Unit unit;
    int side, kb, banks;
  };
  // source: HASCO, Table III
  for (const Choice& c : {Choice{"edge", spatial::Unit::Gemm, 8, 256, 6},
                          {"edge", spatial::Unit::Conv2d, 12, 320, 8},
                          {"edge", spatial::Unit::Conv2d, 11, 512, 6},
                          {"cloud", spatial::Unit::Gemm, 64, 1024, 8},
                          {"cloud", spatial::Unit::Conv2d, 64, 1536, 8}}) {
    const DesignSpace read = space(c.space);
    bool found = false;
    read.for_each([&](const search::Point& point) {
      const spatial::Design d = spatial_design(read.values(point));
      found = d.unit == c.unit && d.rows == c.side && d.cols == c.side && d.spad_kb == c.kb &&
              d.banks == c.banks && read.legal(point);
      return !found;
    });
    EXPECT_TRUE(found) << c.space << " " << c.side << " " << c.kb;
  }
}

TEST(DesignSpace, EdgeRefusesWhatItsRulesAndPowerSay) {
  const DesignSpace edge = space("edge");
  EXPECT_THAT(edge.file().limits,
              ElementsAre(Limit{Objective::Power, 2000, LimitUnit::Milliwatts}));
  EXPECT_EQ(edge.points().size(), 3 * 13 * 8 * 3 * 8 * 2);  // ws, os and conv2d
  // The rule: no 128 KiB for sums beside a scratchpad of 64 KiB.
  EXPECT_EQ(edge.legal_points(), 3 * 13 * 8 * 3 * 8 * 2 - 3 * 13 * 8 * 2);
  bool above = false, below = false;
  edge.for_each([&](const search::Point& point) {
    const double power = peak_power(spatial_design(edge.values(point)), edge.file().technology);
    (power > 2000 ? above : below) = true;
    return !(above && below);
  });
  EXPECT_TRUE(above && below);
}

TEST(DesignSpace, VtaIsASecondGenerator) {
  const DesignSpace read = space("vta");
  EXPECT_EQ(read.points().size(), 3 * 4 * 4 * 4 * 4 * 4);
  const std::optional<int64_t> legal = read.legal_points();
  ASSERT_TRUE(legal);
  EXPECT_GT(*legal, 0);
  EXPECT_LT(*legal, 3072);
  // The published design is one of them.
  const auto point = read.points().find(
      "log_block_in=4 log_uop_buff=15 log_inp_buff=15 log_wgt_buff=18 "
      "log_acc_buff=17 bus_bytes=8");
  ASSERT_TRUE(point);
  EXPECT_TRUE(read.legal(*point));
  vta::Config wanted;
  EXPECT_EQ(std::get<vta::Config>(read.hardware(*point)), wanted);
  EXPECT_THAT(read.reasons(read.points().canonical({0, 3, 3, 3, 3, 3})), Not(IsEmpty()));
}

TEST(DesignSpace, GemminiIsAThird) {
  const DesignSpace read = space("gemmini");
  EXPECT_EQ(read.points().size(), 5 * 8 * 5 * 8);
  int64_t legal = 0;
  bool published = false;
  read.for_each([&](const search::Point& point) {
    const gemmini::Config config = gemmini_config(read.values(point));
    EXPECT_EQ(static_cast<bool>(gemmini::check(config)), read.legal(point));
    legal += read.legal(point) ? 1 : 0;
    published = published || config == gemmini::Config{};
    return true;
  });
  // Powers of two are no three banks. Four blocks must fit into the scratchpad, one into the
  // accumulator: with 32x32 from 4 KiB on, with 64x64 from 16.
  EXPECT_EQ(legal, 4 * (3 * 8 * 8 + 8 * 7 + 7 * 5));
  EXPECT_TRUE(published);
}

TEST(DesignSpace, FixingAPrimitiveRemovesItsDimension) {
  const auto dimensions = [](const std::string& parameters, const std::string& fixed) {
    const Result<DesignSpace> read = read_space(small("", parameters, fixed), "s.toml");
    EXPECT_TRUE(read) << to_string(read.error());
    return read ? read->points().decisions().size() : 0;
  };
  EXPECT_EQ(dimensions("rows = [4, 8]\ncols = [4, 8]\nbanks = [1, 2]\n", ""), 3u);
  EXPECT_EQ(dimensions("rows = [4, 8]\ncols = [4, 8]\n", "banks = 2\n"), 2u);
  EXPECT_EQ(dimensions("rows = [4, 8]\ncols = [4, 8]\nbanks = [2]\n", ""), 2u);
  EXPECT_EQ(dimensions("", "rows = 4\ncols = 4\nbanks = 2\n"), 0u);
}

TEST(DesignSpace, TheUnitMayBeADecision) {
  const std::string text =
      "kind = \"space\"\nname = \"s\"\ntechnology = \"asic45\"\n[parameters]\n"
      "intrinsic = [\"conv2d\", \"gemm\", \"dot\"]\ndataflow = [\"os\", \"ws\"]\n"
      "[fixed]\nrows = 8\ncols = 8\nspad_kb = 256\nbanks = 4\nlocal_kb = 64\nbus_bytes = 8\n"
      "burst_bytes = 2048\n";
  const Result<DesignSpace> read = read_space(text, "s.toml");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->points().size(), 4);
  EXPECT_EQ(read->legal_points(), 4);
  EXPECT_EQ(read->design({0, 0}).unit, spatial::Unit::Conv2d);
  EXPECT_EQ(read->design({0, 0}).links, spatial::Links::Full);
  EXPECT_EQ(read->design({0, 0}).dataflow, spatial::Design().dataflow);
  EXPECT_EQ(read->design({1, 0}).dataflow, spatial::Dataflow::OutputStationary);
  EXPECT_EQ(read->design({1, 0}).links, spatial::Links::Systolic);
  EXPECT_EQ(read->design({2, 0}).unit, spatial::Unit::Dot);
  // Without gemm, a dataflow would be a dimension that changes nothing.
  std::string other = text;
  other.replace(other.find("\"gemm\""), 6, "\"gemv\"");
  EXPECT_THAT(space_errors(other), AllOf(HasSubstr("`dataflow` changes nothing here: only gemm"),
                                         HasSubstr("s.toml:6:12")));
}

TEST(DesignSpace, PointsThatCannotBeBuiltSayWhy) {
  const Result<DesignSpace> read =
      read_space(small("rules = [\"rows * cols <= 512\"]\n",
                       "rows = [4, 64]\nbanks = [1, 2]\nlinks = [\"systolic\", \"full\"]\n",
                       "cols = \"rows / 8 * 7 + 0.5\"\n"),
                 "s.toml");
  ASSERT_TRUE(read) << to_string(read.error());  // 4 x 4 only: 56.5 is not whole
  EXPECT_EQ(read->points().size(), 8);
  EXPECT_EQ(read->legal_points(), 4);
  EXPECT_THAT(read->reasons({0, 0, 0}), IsEmpty());
  EXPECT_THAT(read->reasons({1, 0, 0}),
              ElementsAre(HasSubstr("breaks the rule `rows * cols <= 512` (s.toml:4:10)"),
                          HasSubstr("cols = rows / 8 * 7 + 0.5 is 56.5, but must be whole")));
}

TEST(DesignSpace, UnknownAndMissingKeysAreNamed) {
  const std::string errors = space_errors(
      small("rule = []\n", "row = [4, 8]\ncols = [4, 8]\n", "timing.read_latencies = 3\n"));
  EXPECT_THAT(errors, AllOf(HasSubstr("unknown key `rule`"), HasSubstr("did you mean 'rules'?"),
                            HasSubstr("unknown key `row`"), HasSubstr("did you mean 'rows'?"),
                            HasSubstr("s.toml:6:7")));
  EXPECT_THAT(errors, AllOf(HasSubstr("`rows` is missing"), HasSubstr("`banks` is missing"),
                            HasSubstr("unknown key `timing.read_latencies`"),
                            HasSubstr("did you mean 'timing.read_latency'?")));
  EXPECT_THAT(space_errors("kind = \"spaces\"\n"),
              AllOf(HasSubstr("`kind` must be \"space\""), HasSubstr("needs a `name`"),
                    HasSubstr("needs a `technology`"), HasSubstr("`intrinsic` is missing")));
  EXPECT_THAT(space_errors("kind = \"space\"\nname = \"s\"\ntechnology = \"asci45\"\n"
                           "generator = \"spatal\"\n"),
              AllOf(HasSubstr("did you mean 'asic45'?"), HasSubstr("did you mean 'spatial'?"),
                    HasSubstr("s.toml:4:13")));
}

TEST(DesignSpace, KeysOfTablesInTables) {
  const Result<DesignSpace> read =
      read_space(small("", "rows = [4, 8]\ntiming.read_latency = [0, 16]\n",
                       "cols = 4\nbanks = 2\n[fixed.timing]\nburst_gap = 7\n"),
                 "s.toml");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->points().decisions()[1].name, "timing.read_latency");
  EXPECT_EQ(read->design({0, 0}).timing.read_latency, 0);
  EXPECT_EQ(read->design({0, 1}).timing.burst_gap, 7);
}

TEST(DesignSpace, BadRangesAndChoicesAreRefusedWithTheirPlace) {
  const auto of_banks = [](const std::string& value) {
    return space_errors(small("", "rows = [4]\nbanks = " + value + "\n", "cols = 4\n"));
  };
  EXPECT_THAT(of_banks("[]"), AllOf(HasSubstr("`banks` has no choices"), HasSubstr("s.toml:6:9")));
  EXPECT_THAT(of_banks("{ from = 8, to = 1 }"),
              HasSubstr("the range of `banks` is reversed: 8..1"));
  EXPECT_THAT(of_banks("{ from = 1 }"), HasSubstr("`banks.to` is missing"));
  EXPECT_THAT(of_banks("{ from = 1, to = 8, stop = 2 }"), HasSubstr("did you mean 'step'?"));
  EXPECT_THAT(of_banks("{ from = 1, to = 8, step = 0 }"), HasSubstr("must be above 0"));
  EXPECT_THAT(of_banks("{ from = 1, to = 8, times = 1 }"), HasSubstr("must be above 1"));
  EXPECT_THAT(of_banks("{ from = 1, to = 8, step = 1, times = 2 }"), HasSubstr("step and times"));
  EXPECT_THAT(of_banks("{ from = 1, to = 8, step = 0.5 }"), HasSubstr("`banks` is 1.5"));
  EXPECT_THAT(of_banks("{ from = 1, to = 99 }"), HasSubstr("`banks` is 17, but must be"));
  EXPECT_THAT(of_banks("[1, 2, 1]"), HasSubstr("the choice 1 twice"));
  EXPECT_THAT(of_banks("[1, \"2\"]"), HasSubstr("`banks` must be a number"));
  EXPECT_THAT(of_banks("[0]"), HasSubstr("`banks` is 0"));
  EXPECT_THAT(of_banks("4"), HasSubstr("one value stands in [fixed]"));
  EXPECT_THAT(of_banks("[1, nan]"), HasSubstr("`banks` is nan"));
  EXPECT_THAT(of_banks("{ from = nan, to = 3 }"), HasSubstr("reversed"));
  const auto fixed = [](const std::string& line) {
    return space_errors(small("", "rows = [4, 8]\nbanks = [1, 2]\n", "cols = 4\n" + line + "\n"));
  };
  EXPECT_THAT(fixed("bank_bytes = 12"), HasSubstr("must be a power of two in 4..64"));
  EXPECT_THAT(fixed("rows = 4"), HasSubstr("`rows` is fixed already"));
  EXPECT_THAT(fixed("links = \"ful\""), HasSubstr("did you mean 'full'?"));
  EXPECT_THAT(fixed("links = [\"full\"]"), HasSubstr("has one value here"));
  EXPECT_THAT(space_errors(small("", "rows = [4, 8]\nbanks = [1, 2]\ncols = \"rows\"\n", "")),
              HasSubstr("`cols` is no parameter"));
}

TEST(DesignSpace, RulesAreRefusedAtTheWordThatIsWrong) {
  EXPECT_THAT(space_errors(small("rules = [\"rows <= 8\", \"rows <= colls\"]\n",
                                 "rows = [4, 8]\nbanks = [1, 2]\n", "cols = 4\n")),
              AllOf(HasSubstr("there is no key `colls`"), HasSubstr("s.toml:4:32")));
  EXPECT_THAT(space_errors(small("rules = [3]\n", "rows = [4, 8]\nbanks = [1]\n", "cols = 4\n")),
              HasSubstr("`rules` must be a list of texts"));
  EXPECT_THAT(space_errors(small("", "rows = [4, 8]\nbanks = [1]\n", "cols = \"rowz\"\n")),
              AllOf(HasSubstr("there is no key `rowz`"), HasSubstr("s.toml:13:9")));
  EXPECT_THAT(space_errors(small("", "rows = [4, 8]\n", "cols = \"rows\"\nbanks = \"cols\"\n")),
              HasSubstr("`banks` is computed from `cols`, which is computed itself"));
}

TEST(DesignSpace, RulesThatNothingMeetsAreRefused) {
  const std::string errors = space_errors(
      small("rules = [\"rows < cols\",\n  \"rows == 8 or banks == 3\", \"rows * banks > 100\"]\n",
            "rows = [4, 8]\nbanks = [1, 2]\n", "cols = \"rows\"\n"));
  EXPECT_THAT(errors, AllOf(HasSubstr("nothing in this space meets the rule `rows < cols`"),
                            HasSubstr("s.toml:4:10"), HasSubstr("`rows * banks > 100`"),
                            HasSubstr("s.toml:5:30"), Not(HasSubstr("banks == 3`"))));
  // Each can be met, but not both.
  EXPECT_THAT(space_errors(small("rules = [\"rows == 4\", \"rows == 8\"]\n",
                                 "rows = [4, 8]\nbanks = [1, 2]\n", "cols = 4\n")),
              AllOf(HasSubstr("no point of this space can be built (4 were looked at)"),
                    HasSubstr("breaks the rule `rows == 8`")));
  // What follows from the unit counts, too: gemv has no systolic links.
  EXPECT_THAT(
      space_errors("kind = \"space\"\nname = \"s\"\ntechnology = \"asic45\"\n"
                   "rules = [\"links == systolic\"]\n[fixed]\nintrinsic = \"gemv\"\nrows = 8\n"
                   "cols = 8\nspad_kb = 256\nbanks = 4\nlocal_kb = 64\nbus_bytes = 8\n"
                   "burst_bytes = 2048\n"),
      HasSubstr("nothing in this space meets the rule `links == systolic`"));
}

TEST(DesignSpace, LimitsHaveUnits) {
  const auto limits = [](const std::string& line) {
    return space_errors(
        small("", "rows = [4, 8]\nbanks = [1, 2]\n", "cols = 4\n[limits]\n" + line + "\n"));
  };
  EXPECT_THAT(limits("power = \"2 J\""),
              AllOf(HasSubstr("one of W, mW"), HasSubstr("s.toml:15:9")));
  EXPECT_THAT(limits("power = 2"), HasSubstr("must be a text in quotes"));
  EXPECT_THAT(limits("powr = \"2 W\""), HasSubstr("did you mean 'power'?"));
  EXPECT_THAT(limits("area = \"40 %\""), HasSubstr("areas of asic45 are in um2"));
  EXPECT_EQ(*parse_limit("latency", "2e9 cycles"),
            (Limit{Objective::Latency, 2e9, LimitUnit::Cycles}));
  EXPECT_EQ(*parse_limit("latency", "10ms"), (Limit{Objective::Latency, 0.01, LimitUnit::Seconds}));
  EXPECT_EQ(*parse_limit("area", "1.5 mm2"),
            (Limit{Objective::Area, 1.5e6, LimitUnit::SquareMicrometres}));
  for (const char* text : {"", "W", "2", "-2 W", "0 W", "2 w", "1e999 W", "2 W W", "nan W", "2e W"})
    EXPECT_FALSE(parse_limit("power", text)) << text;
  for (const auto& [objective, text] :
       {std::pair("power", "2 W"), {"area", "40%"}, {"edp", "3 mJs"}})
    EXPECT_EQ(*parse_limit(objective, to_string(*parse_limit(objective, text))),
              *parse_limit(objective, text));
}

TEST(DesignSpace, UnknownNamesAreExplained) {
  const Result<DesignSpace> read = load_space("egde");
  ASSERT_FALSE(read);
  EXPECT_THAT(to_string(read.error()), HasSubstr("did you mean 'edge'?"));
  EXPECT_EQ(load_space("/nowhere/s.toml").error().kind, ErrorKind::Io);
}

TEST(DesignSpace, ATechnologyMayLieBesideTheSpace) {
  const std::string folder = ::testing::TempDir();
  const Result<std::string> asic = read_file(TILEWRIGHT_ROOT_DIR "/hw/tech/asic45.toml");
  ASSERT_TRUE(asic);
  std::string text = small("", "rows = [4, 8]\nbanks = [1, 2]\n", "cols = 4\n");
  text.replace(text.find("\"asic45\""), 8, "\"mine.toml\"");
  ASSERT_TRUE(write_file(folder + "/my_space.toml", text));

  std::string mine = *asic;
  mine.replace(mine.find("name = \"asic45\""), 15, "name = \"mine\"");
  ASSERT_TRUE(write_file(folder + "/mine.toml", mine));
  const Result<DesignSpace> read = load_space(folder + "/my_space.toml");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->file().technology.name, "mine");

  ASSERT_TRUE(write_file(folder + "/mine.toml", "kind = \"technology\"\n"));
  const Result<DesignSpace> bad = load_space(folder + "/my_space.toml");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().place, HasSubstr("mine.toml"));
  text.replace(text.find("mine.toml"), 9, "none.toml");
  EXPECT_THAT(to_string(read_space(text, folder + "/s.toml").error()),
              AllOf(HasSubstr("none.toml"), HasSubstr("s.toml:3:14")));
}

// Whatever is done to a file, it is read into a space with legal points or refused with a place.
TEST(DesignSpace, MutatedFilesAreReadOrRefused) {
  const Result<std::string> good = read_file(TILEWRIGHT_ROOT_DIR "/spaces/edge.toml");
  ASSERT_TRUE(good);
  const std::string pieces[] = {"[",  "]",   "\"", "= ",     "\n",  "-",    "1e999", "nan",  "{",
                                "}",  "#",   "0",  "rows",   "and", "not ", "==",    " * 2", "9",
                                "\\", "1e9", ",",  "banks ", "(",   ")",    "step",  "\xf0"};
  Rng rng(11);
  int refused = 0, kept = 0;
  for (int n = 0; n < 400; ++n) {
    std::string text = *good;
    for (int64_t changes = 1 + rng.below(2); changes > 0; --changes) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      if (rng.chance(0.4))
        text.erase(at, static_cast<size_t>(1 + rng.below(12)));
      else
        text.insert(at, pieces[rng.below(std::size(pieces))]);
    }
    const Result<DesignSpace> read = read_space(text, "mutated");
    if (read) {
      ++kept;
      bool legal = false;
      read->for_each([&](const search::Point& point) { return !(legal = read->legal(point)); });
      EXPECT_TRUE(legal) << text;
      continue;
    }
    ++refused;
    EXPECT_THAT(read.error().place, HasSubstr("mutated"));
    EXPECT_FALSE(read.error().what.empty());
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(kept, 50);
}

}  // namespace
}  // namespace tilewright::codesign
