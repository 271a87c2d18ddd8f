#include "tilewright/hw/rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::hw {
namespace {

using ::testing::HasSubstr;

const RatesKey kKey{"some processor; model 3", 4, "compiler 7"};

CpuRates example() {
  CpuRates rates;
  rates.measured = true;
  rates.f32 = 116.25;
  rates.bf16 = 232;
  rates.int8 = 0;
  rates.l1 = {220, 880};
  rates.l2 = {110, 440};
  rates.l3 = {60, 200};
  rates.dram = {30.5, 61};
  rates.fork_join_ns = 412;
  rates.ghz = 1.9;
  rates.tiles = {{DType::F32, 14, 2, 0.987, 114.7}, {DType::I8, 6, 4, 0.5, 60}};
  rates.about = {1700000000, 0.5, 0.01, 0.002, 9000, 9100, 8.5};
  return rates;
}

std::string text() { return rates_to_json(example(), kKey); }

std::string replaced(std::string_view from, std::string_view to) {
  std::string json = text();
  const size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return json.replace(at, from.size(), to);
}

void expect_error(const std::string& json, ErrorKind kind, const std::string& place,
                  const std::string& what) {
  const Result<CpuRates> rates = rates_from_json(json, kKey);
  ASSERT_FALSE(rates) << what;
  EXPECT_EQ(rates.error().kind, kind);
  EXPECT_EQ(rates.error().place, place);
  EXPECT_THAT(rates.error().what, HasSubstr(what));
}

TEST(Rates, TextKeepsEveryNumber) {
  const Result<CpuRates> rates = rates_from_json(text(), kKey);
  ASSERT_TRUE(rates) << to_string(rates.error());
  EXPECT_TRUE(rates->measured);
  EXPECT_EQ(rates->bf16, 232);
  EXPECT_EQ(rates->int8, 0);
  EXPECT_EQ(rates->l3.all, 200);
  EXPECT_EQ(rates->dram.one, 30.5);
  EXPECT_EQ(rates->fork_join_ns, 412);
  ASSERT_EQ(rates->tiles.size(), 2u);
  EXPECT_EQ(rates->tiles[1].dtype, DType::I8);
  EXPECT_EQ(rates->tiles[1].rows, 6);
  EXPECT_EQ(rates->tiles[1].columns, 4);
  EXPECT_EQ(rates->tiles[0].share, 0.987);
  EXPECT_EQ(rates->tiles[0].rate, 114.7);
  EXPECT_EQ(rates->ghz, 1.9);
  EXPECT_EQ(rates->about.when, 1700000000);
  EXPECT_EQ(rates->about.kept, 9000);
  EXPECT_EQ(rates->about.load, 0.5);
  // What was rounded to four digits stays as it is from then on.
  EXPECT_EQ(rates->f32, 116.2);
  EXPECT_EQ(rates_to_json(*rates, kKey), text());
}

/// A fleet's worker measured them: only the code generator must be this one.
TEST(Rates, ThoseOfAnotherMachineCanBeAskedFor) {
  EXPECT_EQ(rates_of_other(text()).error().kind, ErrorKind::Package) << "of compiler 7";
  RatesKey key = kKey;
  key.compiler = rates_key().compiler;
  const auto rates = rates_of_other(rates_to_json(*rates_from_json(text(), kKey), key));
  ASSERT_TRUE(rates) << to_string(rates.error());
  EXPECT_EQ(rates->f32, 116.2);
  EXPECT_EQ(rates_of_other("{}").error().kind, ErrorKind::Parse);
}

TEST(Rates, ThoseOfAnotherMachineAreRefused) {
  RatesKey other = kKey;
  other.cores = 2;
  EXPECT_EQ(rates_from_json(text(), other).error().kind, ErrorKind::Package);
  other = kKey;
  other.processor += "x";
  EXPECT_EQ(rates_from_json(text(), other).error().kind, ErrorKind::Package);
  other = kKey;
  other.compiler = "compiler 8";
  EXPECT_EQ(rates_from_json(text(), other).error().kind, ErrorKind::Package);
  EXPECT_EQ(rates_from_json(replaced("\"version\": 3", "\"version\": 2"), kKey).error().kind,
            ErrorKind::Package);
}

TEST(Rates, BrokenFilesNameThePlace) {
  const ErrorKind parse = ErrorKind::Parse;
  expect_error("", parse, "", "no JSON");
  expect_error(text().substr(0, text().size() / 2), parse, "", "no JSON");
  expect_error("[]", parse, "$", "an object is expected");
  expect_error(replaced("tilewright.rates", "tilewright.rate"), parse, "$.schema", "is expected");
  expect_error(replaced("\"f32\": 116.2", "\"f32\": -1"), parse, "$.rates.f32", "a number from");
  expect_error(replaced("\"f32\": 116.2", "\"f32\": \"fast\""), parse, "$.rates.f32", "a number");
  expect_error(replaced("\"f32\": 116.2", "\"f32\": 1e300"), parse, "$.rates.f32", "a number");
  expect_error(replaced("\"bf16\"", "\"bf61\""), parse, "$.rates", "'bf16' is missing");
  expect_error(replaced("\"bf16\"", "\"x\": 1, \"bf16\""), parse, "$.rates", "'x' is unknown");
  expect_error(replaced("\"one\": 110", "\"one\": 0"), parse, "$.rates.l2.one", "a number");
  expect_error(replaced("\"dtype\": \"i8\"", "\"dtype\": \"i9\""), parse, "$.rates.tiles[1].dtype",
               "element type");
  expect_error(replaced("\"rows\": 14", "\"rows\": 14.5"), parse, "$.rates.tiles[0].rows",
               "an integer");
  expect_error(replaced("\"share\": 0.5", "\"share\": 1.5"), parse, "$.rates.tiles[1].share",
               "a number from 0.001 to 1.05");
  expect_error(replaced("\"assumed\": []", "\"assumed\": [\"l4\"]"), parse, "$.rates.assumed",
               "is expected");
  expect_error(replaced("\"load\": 0.5", "\"load\": -1"), parse, "$.measurement.load", "a number");
  expect_error(replaced("\"cores\": 4", "\"cores\": \"4\""), parse, "$.machine.cores",
               "an integer");
}

TEST(Rates, AssumedPartsStayMarked) {
  CpuRates rates = example();
  rates.assumed = {"l3", "tiles"};
  EXPECT_EQ(rates_from_json(rates_to_json(rates, kKey), kKey)->assumed, rates.assumed);
  EXPECT_TRUE(rates_from_json(rates_to_json(rates, kKey), kKey)->measured);
  rates.assumed = {"f32"};
  EXPECT_FALSE(rates_from_json(rates_to_json(rates, kKey), kKey)->measured);
}

TEST(Rates, CoresShareWhatOneCannotExhaust) {
  const Bandwidth dram{30, 61};
  EXPECT_EQ(dram.of(1), 30);
  EXPECT_EQ(dram.of(2), 60);
  EXPECT_EQ(dram.of(4), 61);
}

TEST(Rates, TheNearestTileSpeaksForAnother) {
  const CpuRates rates = example();
  EXPECT_EQ(rates.tile_share(DType::F32, 14, 2), 0.987);
  EXPECT_EQ(rates.tile_share(DType::F32, 1, 1), 0.987);
  EXPECT_EQ(rates.tile_share(DType::F64, 14, 2), 1);
}

}  // namespace
}  // namespace tilewright::hw
