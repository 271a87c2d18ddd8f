#include "tilewright/fleet/measure/measure_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::fleet {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json measure_payload() {
  MeasureRequest request;
  request.kernel = {"func f()", "a target", 2};
  request.anchor = "an anchor";
  request.anchor_cost = 12.5;
  request.best_cost = 7;
  request.limit_s = 3;
  request.record.workload = "sha256:1";
  request.record.name = "doubling";
  request.record.kind = "schedule";
  request.record.machine = "1a2b";
  request.record.compiler = "c";
  request.record.unit = "ns";
  request.record.searcher = "s";
  request.record.seed = 5;
  request.items = {{"first", "a=1", 10}, {"second", "", 20}};
  return to_json(request);
}

Json race_payload() {
  return to_json(RaceRequest{{"func f()", "a target", 2}, {"x", "y"}, 5, 3, {1, 2}, {"a=1", ""}});
}

/// `payload` without the member at `path`, or with another value there.
Json without(Json payload, const std::string& path) {
  const Json::json_pointer at(path);
  payload.at(at.parent_pointer()).erase(at.back());
  return payload;
}
Json with(Json payload, const std::string& path, Json value) {
  payload[Json::json_pointer(path)] = std::move(value);
  return payload;
}

TEST(MeasureRequest, ComesBack) {
  const auto request = measure_request_of(measure_payload());
  ASSERT_TRUE(request) << to_string(request.error());
  EXPECT_EQ(to_json(*request), measure_payload());
  EXPECT_EQ(request->items[1].schedule, "second");
  EXPECT_EQ(request->record.seed, 5);
  const auto race = race_request_of(race_payload());
  ASSERT_TRUE(race) << to_string(race.error());
  EXPECT_EQ(to_json(*race), race_payload());
}

/// Neither its target nor its cost: these are the device's and the worker's.
TEST(MeasureRequest, ARecordHasNothingElse) {
  Json payload = with(measure_payload(), "/record/target", "cpu:other");
  payload = with(payload, "/record/cost", 1);
  const auto request = measure_request_of(payload);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->record.target, "");
  EXPECT_EQ(request->record.cost, 0);
}

TEST(MeasureRequest, NothingMayBeMissingOrOfAnotherType) {
  for (const char* path : {"/func",
                           "/target",
                           "/threads",
                           "/anchor",
                           "/anchor_cost",
                           "/best_cost",
                           "/limit_s",
                           "/record",
                           "/record/workload",
                           "/record/name",
                           "/record/kind",
                           "/record/machine",
                           "/record/compiler",
                           "/record/unit",
                           "/record/searcher",
                           "/record/seed",
                           "/candidates",
                           "/candidates/0/schedule",
                           "/candidates/1/point",
                           "/candidates/0/prior"}) {
    const auto missing = measure_request_of(without(measure_payload(), path));
    ASSERT_FALSE(missing) << path;
    EXPECT_EQ(missing.error().kind, ErrorKind::Package);
    EXPECT_THAT(missing.error().what, HasSubstr("measure"));
    for (const Json& wrong : {Json(nullptr), Json::array({1})})
      EXPECT_FALSE(measure_request_of(with(measure_payload(), path, wrong))) << path << wrong;
  }
  for (const char* path : {"/func", "/target", "/threads", "/schedules", "/rounds", "/limit_s"}) {
    EXPECT_FALSE(race_request_of(without(race_payload(), path))) << path;
    EXPECT_FALSE(race_request_of(with(race_payload(), path, nullptr))) << path;
  }
  for (const Json& none : {Json(), Json(3), Json::array(), Json("text")}) {
    EXPECT_FALSE(measure_request_of(none));
    EXPECT_FALSE(race_request_of(none));
  }
}

TEST(MeasureRequest, NumbersHaveLimits) {
  const std::pair<const char*, Json> kBeyond[] = {
      {"/threads", 0},      {"/threads", 100000}, {"/limit_s", 0},
      {"/limit_s", 1e6},    {"/limit_s", -1},     {"/candidates", Json::array()},
      {"/anchor_cost", -1}, {"/best_cost", -1},   {"/anchor_cost", 0},
      {"/anchor", ""}};
  for (const auto& [path, value] : kBeyond)
    EXPECT_FALSE(measure_request_of(with(measure_payload(), path, value))) << path << value;
  Json many = measure_payload();
  for (int i = 0; i < 256; ++i) many["candidates"].push_back(many["candidates"][0]);
  EXPECT_FALSE(measure_request_of(many));
  const std::pair<const char*, Json> kBeyondRace[] = {{"/rounds", 0},
                                                      {"/rounds", 1000000},
                                                      {"/schedules", Json::array()},
                                                      {"/priors", Json::array({1})},
                                                      {"/points", Json::array()}};
  for (const auto& [path, value] : kBeyondRace)
    EXPECT_FALSE(race_request_of(with(race_payload(), path, value))) << path << value;
  EXPECT_TRUE(race_request_of(without(race_payload(), "/priors")));
}

TEST(MeasureRequest, KeysTellKernelsApart) {
  const MeasuredKernel kernel{"f", "t", 1};
  EXPECT_EQ(kernel_key(kernel), kernel_key({"f", "t", 1}));
  for (const MeasuredKernel& other :
       {MeasuredKernel{"g", "t", 1}, MeasuredKernel{"f", "u", 1}, MeasuredKernel{"f", "t", 2}})
    EXPECT_NE(kernel_key(kernel), kernel_key(other));
  EXPECT_EQ(kernel_key(kernel).find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::fleet
