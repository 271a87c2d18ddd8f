#include "tilewright/fleet/measure/model_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/fleet/measure/measure_job.h"

namespace tilewright::fleet {
namespace {

using testing::HasSubstr;

ModelDevice quick(uint64_t seed = 0, uint64_t other = 0) {
  return {.seed = seed, .other = other, .id = 0, .seconds = 0};
}

TEST(ModelDevice, DecisionsHaveFactorsOfTheirOwn) {
  EXPECT_EQ(model_cost(quick(), 100, ""), 100);
  EXPECT_EQ(model_cost(quick(), 100, "space:"), 100);
  double least = 10, most = 0;
  for (int i = 0; i < 200; ++i) {
    const double factor = model_cost(quick(), 1, "s: tile=" + std::to_string(i));
    least = std::min(least, factor);
    most = std::max(most, factor);
  }
  EXPECT_GE(least, .7);
  EXPECT_LE(most, 1.4);
  EXPECT_GT(most / least, 1.9);  // nearly all of the range
  const double a = model_cost(quick(), 1, "s: a=1"), b = model_cost(quick(), 1, "s: b=2 x 3");
  EXPECT_NE(a, b);
  EXPECT_DOUBLE_EQ(model_cost(quick(), 100, "s: a=1 b=2 x 3"), 100 * a * b);
  EXPECT_NE(model_cost(quick(), 1, "b=2 x 3"), model_cost(quick(), 1, "b=2"));
}

TEST(ModelDevice, SeedsAndOtherMachinesDiffer) {
  const double cost = model_cost(quick(), 1, "a=1");
  EXPECT_EQ(cost, model_cost(quick(), 1, "a=1"));
  EXPECT_NE(cost, model_cost(quick(1), 1, "a=1"));
  EXPECT_NE(cost, model_cost(quick(0, 1), 1, "a=1"));
  EXPECT_NE(model_cost(quick(0, 1), 1, "a=1"), model_cost(quick(0, 2), 1, "a=1"));
}

TEST(ModelDevice, IsNamed) {
  const auto device = parse_model_device("model:seed=3,seconds=0.5,other=7,id=2");
  ASSERT_TRUE(device) << to_string(device.error());
  EXPECT_EQ(device->seed, 3u);
  EXPECT_EQ(device->other, 7u);
  EXPECT_EQ(device->id, 2u);
  EXPECT_EQ(device->seconds, .5);
  EXPECT_EQ(parse_model_device("model")->seconds, .25);
  for (const char* text : {"modell", "model:seed", "model:seed=", "model:seed=x", "model:sed=1",
                           "model:seed=1.5", "model:seconds=-1", "model:seconds=1x", "model:=1"}) {
    const auto wrong = parse_model_device(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().kind, ErrorKind::Usage);
  }
  EXPECT_THAT(to_string(parse_model_device("model:sed=1").error()), HasSubstr("seed"));
}

/// An agent that takes what it is given.
struct FakePort final : JobPort {
  Status append(const std::string&, const std::string&) override { return {}; }
  Result<std::string> get(const std::string&) override { return std::string(); }
  Status put(const std::string&, std::string_view) override { return {}; }
  void add(ItemResult result) override { results.push_back(std::move(result)); }
  bool stop() override { return false; }
  bool stop_between_items() override { return results.size() >= most; }

  std::vector<ItemResult> results;
  size_t most = 1000;
};

LeasedJob measure_job(int count, int next = 0) {
  MeasureRequest request;
  request.kernel = {"f", "t", 1};
  for (int i = 0; i < count; ++i)
    request.items.push_back({"schedule " + std::to_string(i), "s: i=" + std::to_string(i), 100});
  LeasedJob job;
  job.kind = "measure";
  job.payload = to_json(request);
  job.items = count;
  job.next = next;
  return job;
}

TEST(ModelDevice, MeasuresWithLittleNoise) {
  const auto server = model_server(quick(), "key"), same = model_server(quick(), "key");
  const auto other = model_server(quick(), "another");
  FakePort port, again, elsewhere;
  ASSERT_TRUE(server->serve(measure_job(100, 2), port));
  ASSERT_TRUE(same->serve(measure_job(100, 2), again));
  ASSERT_TRUE(other->serve(measure_job(100, 2), elsewhere));
  ASSERT_EQ(port.results.size(), 98u);
  double squares = 0;
  for (size_t i = 0; i < port.results.size(); ++i) {
    const ItemResult& result = port.results[i];
    EXPECT_EQ(result.item, static_cast<int>(i) + 2);
    EXPECT_EQ(result.outcome, "ok");
    const double cost = model_cost(quick(), 100, "s: i=" + std::to_string(result.item));
    squares += std::pow(result.cost / cost - 1, 2);
    EXPECT_EQ(result.cost, again.results[i].cost);
    EXPECT_NE(result.cost, elsewhere.results[i].cost);
  }
  EXPECT_NEAR(std::sqrt(squares / 98), .01, .003);
}

TEST(ModelDevice, StopsBetweenItems) {
  FakePort port;
  port.most = 3;
  ASSERT_TRUE(model_server(quick(), "key")->serve(measure_job(10), port));
  EXPECT_EQ(port.results.size(), 3u);
}

TEST(ModelDevice, WithoutAPriorThereIsNoCost) {
  LeasedJob job = measure_job(1);
  job.payload["candidates"][0]["prior"] = 0;
  FakePort port;
  ASSERT_TRUE(model_server(quick(), "key")->serve(job, port));
  EXPECT_EQ(port.results.at(0).outcome, "invalid");
  job.items = 2;
  EXPECT_FALSE(model_server(quick(), "key")->serve(job, port));
}

TEST(ModelDevice, RacesHaveNoNoise) {
  const auto server = model_server(quick(), "key");
  RaceRequest request{{"f", "t", 1}, {"x", "y", "z"}, 5, 5, {100, 200, 100}, {"", "", "a=1"}};
  LeasedJob job;
  job.kind = "race";
  job.items = 1;
  job.payload = to_json(request);
  FakePort port;
  ASSERT_TRUE(server->serve(job, port));
  const std::vector<double> ratios = port.results.at(0).output.at("ratios");
  EXPECT_THAT(ratios, testing::ElementsAre(1, 2, model_cost(quick(), 1, "a=1")));
  // Without priors it knows what it has measured.
  ASSERT_TRUE(server->serve(measure_job(2), port));
  request.schedules = {"schedule 0", "schedule 1", "never seen"};
  request.priors.clear();
  request.points.clear();
  job.payload = to_json(request);
  port.results.clear();
  ASSERT_TRUE(server->serve(job, port));
  const std::vector<double> known = port.results.at(0).output.at("ratios");
  EXPECT_DOUBLE_EQ(known.at(1),
                   model_cost(quick(), 1, "s: i=1") / model_cost(quick(), 1, "s: i=0"));
  EXPECT_EQ(known.at(2), -1);
  request.schedules = {"never seen", "schedule 1"};
  job.payload = to_json(request);
  port.results.clear();
  ASSERT_TRUE(server->serve(job, port));
  EXPECT_EQ(port.results.at(0).outcome, "invalid");
}

}  // namespace
}  // namespace tilewright::fleet
