// What a search sends to a store, and what it makes of the answers: the store is made of this file.
#include "tilewright/fleet/measure/remote_measurer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/search/searcher.h"
#include "tilewright/tensor/text.h"

namespace tilewright::fleet {
namespace {

using measure::OutcomeKind;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

measure::Task small_task(int64_t extent = 64) {
  measure::Task task;
  task.name = "add";
  task.func = *tensor::parse_tensor_file(fmt::format(
      "tensor add(A: f32[n]) where n = {} {{\n  C[i in n] = A[i] + 1\n  return C\n}}\n", extent));
  task.target = hw::as_target(hw::host());
  task.threads = 2;
  return task;
}

schedule::Trace split_by(int64_t factor) { return {schedule::Split{"C.i", factor}}; }

measure::Candidate candidate(int64_t factor) {
  return {{static_cast<int>(factor)}, split_by(factor), fmt::format("splits: {}", factor), 7};
}

/// The functions of a store, and its devices: each does the next item of its job at every look.
class FakeStore {
 public:
  explicit FakeStore(int devices) {
    for (int i = 0; i < devices; ++i) names.push_back(fmt::format("d{}", i));
  }

  /// A reading of one schedule that follows its text; `wrong` says another outcome.
  Json reading(const Json& job, size_t place) {
    const std::string schedule = job.at("payload").at("candidates").at(place).at("schedule");
    const auto found = costs.find(schedule);
    const double cost = found == costs.end() ? 100 : found->second;
    if (cost < 0) return {{"outcome", "crash"}, {"reason", "signal 11"}};
    return {{"outcome", "ok"},   {"reason", ""},  {"cost", cost},
            {"least", cost - 1}, {"spread", .01}, {"readings", 7}};
  }

  Result<Json> call(const std::string& function, const std::vector<std::string>& texts) {
    if (away > 0 && function != "close_run") {
      --away;
      if (accepts_unheard && function == "submit") submit(Json::parse(texts[1]));
      return fail(ErrorKind::Unreachable, "no server");
    }
    calls.push_back(function);
    if (function == "new_run") runs.push_back(texts[0]);
    if (function == "close_run") closed.push_back(texts[0]);
    if (function == "submit") {
      EXPECT_EQ(texts[0], runs.back());
      if (full) return fail(ErrorKind::Limit, "20000 jobs wait");
      submit(Json::parse(texts[1]));
      return Json{{"accepted", 1}, {"warnings", Json::array()}};
    }
    if (function == "look") return look(Json::parse(texts[1]));
    if (function == "devices") return devices();
    return Json();
  }

  void submit(const Json& jobs) {
    for (const Json& job : jobs)
      if (known.emplace(job.at("id"), order.size()).second) {
        order.push_back(job);
        states.push_back({{"id", job.at("id")}, {"state", "ready"}, {"results", Json::array()}});
      }
  }

  Json devices() const {
    Json rows = Json::array();
    for (const std::string& name : names)
      rows.push_back({{"name", name},
                      {"pool", "default"},
                      {"class", "cpu:test"},
                      {"target", "cpu"},
                      {"state", "free"}});
    return rows;
  }

  Json look(const Json& have) {
    for (const std::string& name : names)
      if (!absent.contains(name)) work(name);
    Json answer = Json::array();
    for (const auto& [id, count] : have.items()) {
      Json state = states.at(known.at(id));
      Json& results = state["results"];
      results.erase(results.begin(), results.begin() + count.get<long>());
      answer.push_back(state);
    }
    return {{"jobs", answer}};
  }

  /// A device does one item of its job, or takes the next job.
  void work(const std::string& device) {
    if (idle) return;
    for (size_t i = 0; i < order.size(); ++i) {
      Json& state = states[i];
      const Json& job = order[i];
      const bool its = state["state"] == "leased" && state["device"] == device;
      const bool next =
          state["state"] == "ready" && (job.at("device").is_null() || job.at("device") == device);
      if (!its && !next) continue;
      if (fails) {
        state["state"] = "failed", state["reason"] = "no such program", state["device"] = device;
        return;
      }
      if (cancels > 0) {
        --cancels;
        state["state"] = "cancelled";
        return;
      }
      state["state"] = "leased", state["device"] = device;
      const size_t done = state["results"].size();
      Json result = job.at("kind") == "race" ? race(device) : reading(job, done);
      result["item"] = done;
      state["results"].push_back(result);
      if (done + 1 == job.at("n").get<size_t>()) state["state"] = "done";
      if (end_after > 0 && done + 1 == end_after && state["state"] == "leased")
        state["state"] = end_state, state["reason"] = "said so", end_after = 0;
      return;
    }
  }

  Json race(const std::string& device) const {
    return {{"outcome", "ok"}, {"cost", 1}, {"output", {{"ratios", ratios.at(device)}}}};
  }

  Json payload(size_t job) const { return order.at(job).at("payload"); }

  std::vector<std::string> names, calls, runs, closed;
  std::vector<Json> order, states;      ///< jobs as submitted, in order; what became of them
  std::map<std::string, size_t> known;  ///< place in these
  std::map<std::string, double> costs;  ///< by schedule; negative: it crashes
  std::map<std::string, Json> ratios;   ///< of races, by device
  std::set<std::string> absent;         ///< devices that do nothing
  int away = 0;                         ///< calls that are not answered
  bool accepts_unheard = false;         ///< what is not answered is done all the same
  bool full = false, idle = false, fails = false;
  int cancels = 0;       ///< jobs that the store ends before a device has them
  size_t end_after = 0;  ///< items after which a job ends early, as `end_state`
  std::string end_state;
};

struct Made {
  std::vector<std::string> said;
  std::unique_ptr<RemoteMeasurer> measurer;
  bool stop = false;
};

std::unique_ptr<Made> measurer_of(FakeStore& store, RemoteMeasuring options = {}) {
  auto made = std::make_unique<Made>();
  options.compiler = "compiler 1";
  options.searcher = "ours";
  options.say = [raw = made.get()](const std::string& line) { raw->said.push_back(line); };
  options.stop = [raw = made.get()] { return raw->stop; };
  Selected on;
  on.device_class = "cpu:test";
  on.devices = *devices_of(store.devices());
  made->measurer = std::make_unique<RemoteMeasurer>(
      [&store](const std::string& function, const std::vector<std::string>& texts) {
        return store.call(function, texts);
      },
      on, options);
  return made;
}

/// All batches that are out, by number.
std::map<int64_t, std::vector<measure::Reading>> all_of(RemoteMeasurer& measurer, size_t count) {
  std::map<int64_t, std::vector<measure::Reading>> found;
  for (int i = 0; i < 100 && found.size() < count; ++i) {
    const auto batch = measurer.wait(1);
    EXPECT_TRUE(batch) << to_string(batch.error());
    if (!batch) break;
    const bool twice = *batch && !found.emplace((*batch)->id, (*batch)->readings).second;
    EXPECT_FALSE(twice);
  }
  EXPECT_EQ(found.size(), count);
  return found;
}

std::vector<double> costs_of(const std::vector<measure::Reading>& readings) {
  std::vector<double> costs;
  for (const measure::Reading& reading : readings)
    costs.push_back(reading.kind == OutcomeKind::Ok ? reading.cost : -1);
  return costs;
}

TEST(RemoteMeasurer, MeasuresEverythingBesideTheRulesSchedule) {
  FakeStore store(1);
  store.costs = {{schedule::print(split_by(1)), 200},
                 {schedule::print(split_by(2)), 150},
                 {schedule::print(split_by(4)), 120},
                 {schedule::print(split_by(8)), -1}};
  const auto made = measurer_of(store);
  const measure::Task task = small_task();
  const int64_t rule = made->measurer->begin(task, {{{}, split_by(1)}});
  const int64_t first = made->measurer->begin(task, {candidate(2), candidate(8), candidate(4)});
  const int64_t second = made->measurer->begin(task, {candidate(16)});
  const auto found = all_of(*made->measurer, 3);
  EXPECT_THAT(costs_of(found.at(rule)), ElementsAre(200));
  EXPECT_THAT(costs_of(found.at(first)), ElementsAre(150, -1, 120));
  EXPECT_THAT(costs_of(found.at(second)), ElementsAre(100));
  EXPECT_EQ(found.at(first)[1].kind, OutcomeKind::Crash);
  EXPECT_EQ(found.at(first)[1].reason, "signal 11");
  EXPECT_EQ(found.at(first)[2].least, 119);
  EXPECT_EQ(found.at(first)[2].readings, 7);
  ASSERT_EQ(store.order.size(), 3u);
  // The rule goes alone and sets the scale of the others, which wait for it.
  const auto rules = measure_request_of(store.payload(0));
  ASSERT_TRUE(rules) << to_string(rules.error());
  EXPECT_EQ(rules->anchor, "");
  EXPECT_EQ(rules->record.kind, records::kRuleKind);
  EXPECT_EQ(rules->record.searcher, "rule");
  const auto others = measure_request_of(store.payload(1));
  ASSERT_TRUE(others) << to_string(others.error());
  EXPECT_EQ(others->anchor, schedule::print(split_by(1)));
  EXPECT_EQ(others->anchor_cost, 200);
  EXPECT_EQ(others->record.kind, records::kScheduleKind);
  EXPECT_EQ(others->record.workload, task.key());
  EXPECT_EQ(others->record.compiler, "compiler 1");
  EXPECT_EQ(others->items.at(1).point, "splits: 8");
  EXPECT_EQ(others->items.at(1).prior, 7);
  EXPECT_EQ(store.order[1].at("band"), 2);
  EXPECT_EQ(store.order[1].at("class"), "cpu:test");
  EXPECT_EQ(store.order[1].at("n"), 3);
  EXPECT_THAT(made->measurer->used(), ElementsAre("d0"));
}

TEST(RemoteMeasurer, AMuchFasterCandidateBecomesTheAnchor) {
  FakeStore store(1);
  store.costs = {{schedule::print(split_by(1)), 200}, {schedule::print(split_by(2)), 99}};
  const auto made = measurer_of(store);
  const measure::Task task = small_task();
  made->measurer->set_anchor(task, schedule::print(split_by(1)), 200);
  made->measurer->begin(task, {candidate(2)});
  (void)all_of(*made->measurer, 1);
  made->measurer->begin(task, {candidate(4)});
  (void)all_of(*made->measurer, 1);
  EXPECT_EQ(store.payload(0).at("anchor_cost"), 200);  // as an earlier run found it
  EXPECT_EQ(store.payload(1).at("anchor"), schedule::print(split_by(2)));
  EXPECT_EQ(store.payload(1).at("best_cost"), 99);
}

TEST(RemoteMeasurer, AStoreThatIsAwayIsAskedAgain) {
  for (const bool unheard : {false, true}) {
    FakeStore store(2);
    const auto made = measurer_of(store);
    const measure::Task task = small_task();
    store.away = 2;
    store.accepts_unheard = unheard;
    made->measurer->begin(task, {{{}, split_by(1)}});
    EXPECT_FALSE(*made->measurer->wait(.02));
    (void)all_of(*made->measurer, 1);
    ASSERT_GE(made->said.size(), 1u);
    EXPECT_THAT(made->said[0], HasSubstr("measuring goes on"));
    EXPECT_EQ(store.order.size(), 1u) << "submitted once, whoever heard of it";
    store.away = 1;
    made->measurer->begin(task, {candidate(2), candidate(4)});
    (void)all_of(*made->measurer, 1);
  }
}

TEST(RemoteMeasurer, JobsThatEndEarly) {
  FakeStore store(1);
  const auto made = measurer_of(store);
  const measure::Task task = small_task();
  store.end_after = 1, store.end_state = "failed";
  made->measurer->begin(task, {candidate(2), candidate(4), candidate(8)});
  const auto failed = all_of(*made->measurer, 1).begin()->second;
  EXPECT_THAT(costs_of(failed), ElementsAre(100, -1, -1));
  EXPECT_EQ(failed[2].kind, OutcomeKind::Lost);
  EXPECT_EQ(failed[2].reason, "the job is failed: said so");
  // Cancelled, but not by this search: what is left is another job.
  store.end_after = 2, store.end_state = "cancelled";
  store.costs[schedule::print(split_by(8))] = 80;
  made->measurer->begin(task, {candidate(2), candidate(4), candidate(8)});
  EXPECT_THAT(costs_of(all_of(*made->measurer, 1).begin()->second), ElementsAre(100, 100, 80));
  ASSERT_EQ(store.order.size(), 3u);
  EXPECT_EQ(store.payload(2).at("candidates").size(), 1u);
}

TEST(RemoteMeasurer, EndsWhereJobAfterJobFails) {
  for (const bool measured : {false, true}) {
    FakeStore store(1);
    const auto made = measurer_of(store);
    const measure::Task task = small_task();
    if (measured) {
      made->measurer->begin(task, {candidate(2)});
      (void)all_of(*made->measurer, 1);
    }
    store.fails = true;
    int lost = 0;
    Result<std::optional<measure::JudgedBatch>> batch = std::optional<measure::JudgedBatch>();
    while (batch && lost < 100) {
      made->measurer->begin(task, {candidate(4)});
      batch = made->measurer->wait(1);
      if (batch && *batch) ++lost;
    }
    EXPECT_EQ(lost, measured ? 31 : 3) << "the next one is the error";
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().kind, ErrorKind::Device);
    EXPECT_EQ(batch.error().why, "d0: no such program");
  }
}

TEST(RemoteMeasurer, WhatTheMachineCannotDoIsLost) {
  FakeStore store(1);
  store.costs = {{schedule::print(split_by(2)), 9}};
  RemoteMeasuring options;
  options.least = [](const measure::Task&) { return 10.; };
  const auto made = measurer_of(store, options);
  made->measurer->begin(small_task(), {candidate(2), candidate(4)});
  const auto readings = all_of(*made->measurer, 1).begin()->second;
  EXPECT_THAT(costs_of(readings), ElementsAre(-1, 100));
  EXPECT_THAT(readings[0].reason, HasSubstr("implausible"));
}

TEST(RemoteMeasurer, SomeCandidatesAreMeasuredTwice) {
  FakeStore store(2);
  const auto made = measurer_of(store);
  const measure::Task task = small_task();
  made->measurer->set_anchor(task, schedule::print(split_by(1)), 100);
  for (int batch = 0; batch < 52; ++batch) {
    std::vector<measure::Candidate> candidates;
    for (int i = 0; i < 4; ++i) candidates.push_back(candidate(100 + 4 * batch + i));
    made->measurer->begin(task, candidates);
    (void)all_of(*made->measurer, 1);
  }
  made->measurer->begin(task, {candidate(2)});  // the repeats are done by now
  (void)all_of(*made->measurer, 1);
  std::map<std::string, int> times;
  for (const Json& job : store.order)
    for (const Json& item : job.at("payload").at("candidates")) ++times[item.at("point")];
  std::vector<std::string> twice;
  for (const auto& [point, count] : times)
    if (count > 1) twice.push_back(point);
  std::vector<std::string> expected;
  for (int i = 0; i < 208; ++i)  // of two devices, new for 60 candidates each
    if (i % (i < 120 ? 8 : 50) == 0) expected.push_back(fmt::format("splits: {}", 100 + i));
  EXPECT_THAT(twice, testing::UnorderedElementsAreArray(expected));
}

TEST(RemoteMeasurer, GivesUpWhatIsOut) {
  FakeStore store(1);
  const auto made = measurer_of(store);
  store.idle = true;
  made->measurer->begin(small_task(), {candidate(2)});
  EXPECT_FALSE(*made->measurer->wait(.01));
  made->measurer->cancel();
  EXPECT_EQ(store.closed, store.runs);
  store.idle = false;
  const int64_t later = made->measurer->begin(small_task(), {candidate(4)});
  EXPECT_EQ(all_of(*made->measurer, 1).begin()->first, later);
  EXPECT_EQ(store.runs.size(), 2u);
}

TEST(RemoteMeasurer, WaitsForADeviceAsLongAsItMay) {
  FakeStore store(1);
  RemoteMeasuring options;
  options.wait_s = .05;
  const auto made = measurer_of(store, options);
  store.idle = true;
  made->measurer->begin(small_task(), {candidate(2)});
  const auto batch = made->measurer->wait(5);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().kind, ErrorKind::Limit);
  EXPECT_THAT(batch.error().why, HasSubstr("class cpu:test"));
}

TEST(RemoteMeasurer, AFullQueueIsWaitedFor) {
  FakeStore store(1);
  const auto made = measurer_of(store);
  store.full = true;
  made->measurer->begin(small_task(), {candidate(2)});
  EXPECT_FALSE(*made->measurer->wait(.02));
  store.full = false;
  (void)all_of(*made->measurer, 1);
}

TEST(RemoteMeasurer, OfTwoRacesTheWorseRatiosCount) {
  FakeStore store(2);
  store.ratios = {{"d0", {1, .8, .9, -1}}, {"d1", {1, .85, .7, .5}}};
  const auto made = measurer_of(store);
  const std::vector<schedule::Trace> traces = {split_by(1), split_by(2), split_by(4), split_by(8)};
  const auto ratios = made->measurer->race(small_task(), traces, 21);
  ASSERT_TRUE(ratios) << to_string(ratios.error());
  EXPECT_THAT(*ratios, ElementsAre(1, .85, .9, search::kInvalid));
  const auto request = race_request_of(store.payload(0));
  ASSERT_TRUE(request) << to_string(request.error());
  EXPECT_EQ(request->rounds, 21);
  EXPECT_EQ(request->schedules.at(3), schedule::print(split_by(8)));
  EXPECT_EQ(store.order.at(1).at("device"), "d1");
  EXPECT_TRUE(request->priors.empty());
  // Alone there is nobody to confirm it.
  FakeStore one(1);
  one.ratios = store.ratios;
  const auto alone = measurer_of(one);
  EXPECT_THAT(*alone->measurer->race(small_task(), traces, 21),
              ElementsAre(1, .8, .9, search::kInvalid));
  EXPECT_EQ(one.order.size(), 1u);
  one.ratios["d0"] = {-1, 1, 1, 1};
  EXPECT_FALSE(alone->measurer->race(small_task(), traces, 21));
  one.ratios["d0"] = {1};
  EXPECT_FALSE(alone->measurer->race(small_task(), traces, 21));
  // What was measured before is raced with what was expected of it.
  made->measurer->begin(small_task(), {{{}, split_by(1), "", 50}});
  made->measurer->begin(small_task(), {candidate(2)});
  (void)all_of(*made->measurer, 2);
  store.ratios = {{"d0", {1, .8}}, {"d1", {1, .8}}};
  ASSERT_TRUE(made->measurer->race(small_task(), {split_by(1), split_by(2)}, 3));
  const auto known = race_request_of(store.order.back().at("payload"));
  ASSERT_TRUE(known) << to_string(known.error());
  EXPECT_THAT(known->priors, ElementsAre(50, 7));
  EXPECT_THAT(known->points, ElementsAre("", "splits: 2"));
}

/// No device waits for another one's races: in each round of looks all of them run one.
TEST(RemoteMeasurer, RacesRunOnAllDevicesAtATime) {
  FakeStore store(4);
  for (const std::string& name : store.names) store.ratios[name] = {1, .8};
  const auto made = measurer_of(store);
  const measure::Task task = small_task();
  const std::vector<measure::Race> races(8, {&task, {split_by(1), split_by(2)}});
  int asked = 0;
  const auto found = made->measurer->races(races, 21, [&] { return ++asked <= 7; });
  ASSERT_EQ(found.size(), 8u);
  for (size_t i = 0; i < 7; ++i) {
    ASSERT_TRUE(found[i]) << i;
    ASSERT_TRUE(*found[i]) << to_string(found[i]->error());
    EXPECT_THAT(**found[i], ElementsAre(1, .8));
  }
  EXPECT_FALSE(found[7]) << "there was no time for it";
  EXPECT_EQ(store.order.size(), 14u);
  EXPECT_LE(std::count(store.calls.begin(), store.calls.end(), "look"), 5);
  std::map<std::string, int> by_device;
  for (const Json& state : store.states) ++by_device[state.at("device")];
  for (const auto& [name, count] : by_device) EXPECT_GE(count, 2) << name;
}

/// The worker of d1 was killed, which the store does not know yet.
TEST(RemoteMeasurer, ADeviceThatDoesNotTakeARaceIsTheLastToBeAskedAgain) {
  FakeStore store(3);
  store.ratios = {{"d0", {1, .8}}, {"d1", {1, .9}}, {"d2", {1, .85}}};
  store.absent = {"d1"};
  const auto made = measurer_of(store, {.confirm_s = .02});
  const auto race = [&] {
    return made->measurer->race(small_task(), {split_by(1), split_by(2)}, 3).value();
  };
  EXPECT_THAT(race(), ElementsAre(1, .8));
  EXPECT_EQ(store.order.at(1).at("device"), "d1");
  EXPECT_THAT(race(), ElementsAre(1, .85));
  EXPECT_EQ(store.order.at(3).at("device"), "d2");
  store.absent = {"d1", "d2"};
  EXPECT_THAT(race(), ElementsAre(1, .8));
  // All others are silent: one of them is asked all the same, and is there again.
  store.absent.clear();
  EXPECT_THAT(race(), ElementsAre(1, .9));
  EXPECT_EQ(store.order.at(7).at("device"), "d1");
}

/// At the end of a search, too, a store that is away is waited for.
TEST(RemoteMeasurer, ARaceOutlivesItsStore) {
  FakeStore store(1);
  store.ratios = {{"d0", {1, .8}}};
  const auto made = measurer_of(store);
  store.away = 2, store.cancels = 1;
  const auto ratios = made->measurer->race(small_task(), {split_by(1), split_by(2)}, 21);
  ASSERT_TRUE(ratios) << to_string(ratios.error());
  EXPECT_THAT(*ratios, ElementsAre(1, .8));
  EXPECT_THAT(made->said.at(0), HasSubstr("the store does not answer"));
  EXPECT_EQ(store.order.size(), 2u) << "what the store cancelled is asked for again";
  store.cancels = 3;
  EXPECT_FALSE(made->measurer->race(small_task(), {split_by(1), split_by(2)}, 21));
}

TEST(RemoteMeasurer, AnInterruptEndsAllWaiting) {
  FakeStore store(1);
  const auto made = measurer_of(store);
  store.idle = true;
  const auto evaluator = *made->measurer->evaluator(small_task());
  made->stop = true;
  EXPECT_EQ(evaluator->evaluate({candidate(2)}).at(0).kind, OutcomeKind::Lost);
  const auto race = made->measurer->race(small_task(), {split_by(1)}, 3);
  ASSERT_FALSE(race);
  EXPECT_EQ(race.error().kind, ErrorKind::Interrupted);
}

}  // namespace
}  // namespace tilewright::fleet
