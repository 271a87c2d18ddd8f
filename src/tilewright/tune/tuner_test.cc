#include "tilewright/tune/tuner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "tilewright/records/sqlite/sqlite.h"
#include "tilewright/records/workload.h"
#include "tilewright/search/searchers.h"
#include "tilewright/tensor/text.h"
#include "tilewright/tune/evaluators.h"
#include "tilewright/tune/methods.h"
#include "tilewright/tune/transfer.h"

namespace tilewright::tune {
namespace {

using ::testing::HasSubstr;

measure::Task small_task(const std::string& name, int64_t extent) {
  measure::Task task;
  task.name = name;
  task.func = *tensor::parse_tensor_file(fmt::format(
      "tensor add(A: f32[n]) where n = {} {{\n  C[i in n] = A[i] + 1\n  return C\n}}\n", extent));
  task.threads = 2;
  return task;
}

hw::CpuTarget& cpu_of(measure::Task& task) { return std::get<hw::CpuTarget>(task.target.special); }

/// Splits of one loop by 1 to 64, unrolled or not; the prior is right only about the factor.
class SplitSpace final : public ScheduleSpace {
 public:
  SplitSpace() : space_({factors(), search::choice_decision("unroll", {"no", "yes"})}) {}

  static search::Decision factors() {
    std::vector<search::DecisionValue> values;
    for (int f = 1; f <= 64; ++f) values.push_back({std::to_string(f), {static_cast<double>(f)}});
    return search::ordered_decision("factor", values);
  }
  const search::Space& space() const override { return space_; }
  Result<schedule::Trace> trace(const search::Point& point) const override {
    if (point[0] == 12) return fail(ErrorKind::NotApplicable, "13 brings bad luck");
    schedule::Trace trace = {schedule::Split{"C.i", point[0] + 1}};
    // Factor 1 leaves nothing to unroll: both points mean the same.
    if (point[1] == 1 && point[0] > 0) trace.push_back(schedule::Unroll{"C.i.i"});
    return trace;
  }
  double prior(const search::Point& point) const override {
    return 1000 + 10 * std::abs(point[0] - 30);
  }
  std::vector<double> terms(const search::Point& point) const override {
    return {static_cast<double>(point[0])};
  }

 private:
  search::Space space_;
};

/// Costs of a formula; every candidate and what it was called with is remembered.
class Formula final : public measure::Evaluator {
 public:
  struct Log {
    std::vector<std::string> asked;
    bool interrupt_next = false, interrupted = false;
  };
  Formula(std::shared_ptr<Log> log, double gain) : log_(std::move(log)), gain_(gain) {}

  std::vector<measure::Reading> evaluate(
      const std::vector<measure::Candidate>& candidates) override {
    std::vector<measure::Reading> readings;
    for (const measure::Candidate& candidate : candidates) {
      measure::Reading& reading = readings.emplace_back();
      if (log_->interrupt_next && readings.size() > 2) {
        log_->interrupted = true;
        reading.reason = "interrupted";
        continue;
      }
      log_->asked.push_back(schedule::print(candidate.trace));
      reading = judge(candidate);
    }
    return readings;
  }

 private:
  measure::Reading judge(const measure::Candidate& candidate) const {
    if (candidate.point.empty()) return {measure::OutcomeKind::Ok, "", 2000, 1990, 0.01, 7};
    const int factor = candidate.point[0] + 1;
    if (factor == 30) return {measure::OutcomeKind::Crash, "signal 11", 0, 0, 0, 0};
    const double cost = 2000 - gain_ * (64 - std::abs(factor - 20)) - 5 * candidate.point[1];
    return {measure::OutcomeKind::Ok, "", cost, cost - 5, 0.01, 7};
  }

  std::shared_ptr<Log> log_;
  double gain_;
};

struct Made {
  std::vector<TunerTask> tasks;
  std::vector<std::shared_ptr<Formula::Log>> logs;
};

/// Two tasks: the first can gain a lot, the second nothing.
Made two_tasks(const std::string& method = "ours", uint64_t seed = 3) {
  Made made;
  for (const double gain : {20.0, 0.0}) {
    TunerTask task;
    task.task = small_task(gain > 0 ? "fast" : "flat", gain > 0 ? 640 : 320);
    task.space_name = "splits";
    task.space = std::make_shared<SplitSpace>();
    task.searcher = *make_searcher(method, *task.space, task.task, seed);
    task.expected = gain > 0 ? 2000 : 1999;
    const auto log = std::make_shared<Formula::Log>();
    made.logs.push_back(log);
    task.evaluator = [log, gain] {
      return Result<std::unique_ptr<measure::Evaluator>>(std::make_unique<Formula>(log, gain));
    };
    made.tasks.push_back(std::move(task));
  }
  return made;
}

TunerOptions options_of(int64_t trials, std::vector<records::Record>* kept = nullptr) {
  TunerOptions options;
  options.searcher_name = "ours";
  options.compiler = "compiler 1";
  options.trials = trials;
  if (kept != nullptr)
    options.keep = [kept](const std::vector<records::Record>& records) {
      kept->insert(kept->end(), records.begin(), records.end());
      return Status();
    };
  return options;
}

std::vector<std::string> proposals(const Tuner& tuner) {
  std::vector<std::string> all;
  for (size_t i = 0; i < tuner.tasks().size(); ++i)
    for (const TrialLog& trial : tuner.states()[i].trials)
      all.push_back(fmt::format("{} {}", i, trial.point));
  return all;
}

TEST(Tuner, SpendsTrialsWhereTheyGain) {
  Made made = two_tasks();
  for (TunerTask& task : made.tasks) cpu_of(task.task).machine = "1a2b3c4d";
  std::vector<records::Record> kept;
  Tuner tuner(std::move(made.tasks), options_of(100, &kept));
  EXPECT_EQ(*tuner.run(), search::Stop::Trials);
  EXPECT_EQ(tuner.trials(), 100);
  const TaskState& fast = tuner.states()[0];
  const TaskState& flat = tuner.states()[1];
  EXPECT_EQ(fast.trials.size() + flat.trials.size(), 100u);
  EXPECT_GT(fast.trials.size(), 48u);  // both get their first 16, the rest goes to who gains
  EXPECT_GE(flat.trials.size(), 16u);
  EXPECT_EQ(fast.finalists.at(0).trace.size(), 2u);
  EXPECT_EQ(fast.best(), 2000 - 20 * 64 - 5);
  EXPECT_EQ(tuner.untuned(), 4000);
  EXPECT_EQ(tuner.tuned(), fast.best() + flat.best());
  // One record per trial, and one per task for the schedule without tuning.
  ASSERT_EQ(kept.size(), 102u);
  EXPECT_EQ(kept[0].searcher, "rule");
  EXPECT_EQ(kept[0].kind, records::kRuleKind);
  EXPECT_EQ(kept[1].kind, records::kScheduleKind);
  EXPECT_EQ(kept[1].unit, "ns");
  EXPECT_EQ(kept[1].machine, "1a2b3c4d");
  EXPECT_EQ(kept[0].workload, tuner.tasks()[0].task.key());
  std::set<std::string> points;
  for (const records::Record& record : kept) points.insert(record.name + record.point);
  EXPECT_EQ(points.size(), 102u);
}

TEST(Tuner, A3_CountsWhatFailsAndMeasuresEqualSchedulesOnce) {
  Made made = two_tasks("random");
  made.tasks.pop_back();
  std::vector<records::Record> kept;
  Tuner tuner(std::move(made.tasks), options_of(1000, &kept));
  EXPECT_EQ(*tuner.run(), search::Stop::Exhausted);
  const TaskState& state = tuner.states()[0];
  EXPECT_EQ(state.trials.size(), 128u);
  EXPECT_EQ(state.outcomes.at(measure::OutcomeKind::Invalid), 2);
  EXPECT_EQ(state.outcomes.at(measure::OutcomeKind::Crash), 2);
  EXPECT_EQ(state.outcomes.at(measure::OutcomeKind::Ok), 124);
  EXPECT_EQ(state.reasons.at("signal 11"), 2);
  EXPECT_EQ(state.reasons.at("13 brings bad luck"), 2);
  // 128 points, less two without a schedule and one schedule that two points mean; and the rule's.
  EXPECT_EQ(made.logs[0]->asked.size(), 126u);
  int invalid = 0;
  for (const records::Record& record : kept) {
    invalid += record.outcome == "invalid";
    if (record.outcome == "ok") {
      EXPECT_TRUE(schedule::parse_trace(record.schedule)) << record.schedule;
    }
  }
  EXPECT_EQ(invalid, 2);
}

TEST(Tuner, A10_ProposesTheSameFromReplayedReadings) {
  for (const char* method : {"ours", "q", "evolution", "random"}) {
    std::vector<records::Record> kept;
    Tuner first(two_tasks(method).tasks, options_of(90, &kept));
    ASSERT_TRUE(first.run());
    Made again = two_tasks(method);
    for (TunerTask& task : again.tasks) {
      std::vector<records::Record> own;
      for (const records::Record& record : kept)
        if (record.workload == task.task.key()) own.push_back(record);
      task.evaluator = [own] {
        return Result<std::unique_ptr<measure::Evaluator>>(replay_evaluator(own));
      };
    }
    TunerOptions options = options_of(90);
    options.nominal_time = true;
    Tuner second(std::move(again.tasks), options);
    ASSERT_TRUE(second.run());
    EXPECT_EQ(proposals(first), proposals(second)) << method;
    EXPECT_EQ(first.tuned(), second.tuned());
    Tuner other(two_tasks(method, 4).tasks, options_of(90));
    ASSERT_TRUE(other.run());
    if (std::string(method) != "ours") {
      EXPECT_NE(proposals(first), proposals(other)) << method;
    }
  }
}

TEST(Tuner, A7_ResumesWithoutMeasuringAgain) {
  std::vector<records::Record> kept;
  Tuner first(two_tasks().tasks, options_of(40, &kept));
  ASSERT_TRUE(first.run());
  Made again = two_tasks();
  std::set<std::string> before;
  for (TunerTask& task : again.tasks)
    for (const records::Record& record : kept)
      if (record.workload == task.task.key())
        task.known.push_back(record), before.insert(record.name + record.schedule);
  Tuner second(std::move(again.tasks), options_of(40));
  EXPECT_EQ(second.tuned(), first.tuned());  // before anything new is tried
  ASSERT_TRUE(second.run());
  EXPECT_EQ(second.states()[0].resumed + second.states()[1].resumed, 40);
  EXPECT_LE(second.tuned(), first.tuned());
  for (size_t i = 0; i < 2; ++i)
    for (const std::string& schedule : again.logs[i]->asked)
      EXPECT_FALSE(before.contains((i == 0 ? "fast" : "flat") + schedule)) << schedule;
}

TEST(Tuner, ForgetsOnlyWhatWasInFlightWhenInterrupted) {
  Made made = two_tasks();
  const auto log = made.logs[0];
  std::vector<records::Record> kept;
  TunerOptions options = options_of(1000, &kept);
  options.interrupted = [log] { return log->interrupted; };
  options.progress = [log] { log->interrupt_next = log->asked.size() > 10; };
  Tuner tuner(std::move(made.tasks), options);
  EXPECT_EQ(*tuner.run(), search::Stop::Interrupted);
  // Each schedule that was measured to the end is kept, and no other.
  std::set<std::string> recorded, measured;
  for (const records::Record& record : kept) {
    EXPECT_NE(record.outcome, "lost");
    if (record.outcome != "invalid") recorded.insert(record.name + record.schedule);
  }
  for (size_t i = 0; i < 2; ++i)
    for (const std::string& schedule : made.logs[i]->asked)
      measured.insert((i == 0 ? "fast" : "flat") + schedule);
  EXPECT_EQ(recorded, measured);
}

TEST(Tuner, StopsForItsReasons) {
  TunerOptions stall = options_of(100000);
  stall.stall_gain = 0.02;
  Tuner stalled(two_tasks("random").tasks, stall);
  EXPECT_EQ(*stalled.run(), search::Stop::Stall);
  TunerOptions late = options_of(100000);
  late.seconds = 0.05;
  late.nominal_time = true;
  Tuner timed(two_tasks().tasks, late);
  EXPECT_EQ(*timed.run(), search::Stop::Time);
  EXPECT_GT(timed.trials(), 0);
  TunerOptions full = options_of(100);
  full.keep = [](const auto&) { return Status(fail(ErrorKind::Io, "the disk is full")); };
  Tuner refused(two_tasks().tasks, full);
  const auto result = refused.run();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("disk is full"));
}

/// Takes its time for each candidate, one by one.
class Slow final : public measure::Evaluator {
 public:
  std::vector<measure::Reading> evaluate(
      const std::vector<measure::Candidate>& candidates) override {
    return std::vector<measure::Reading>(candidates.size(),
                                         {measure::OutcomeKind::Ok, "", 10, 10, 0.01, 7});
  }
  std::vector<measure::Reading> evaluate_each(const measure::CandidateSource& next) override {
    std::vector<measure::Reading> readings;
    while (const auto candidate = next()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      readings.push_back({measure::OutcomeKind::Ok, "", 10, 10, 0.01, 7});
    }
    return readings;
  }
};

TEST(Tuner, StopsInTheMiddleOfABatchWhenTimeIsUp) {
  Made made = two_tasks("random");
  made.tasks.pop_back();
  made.tasks[0].evaluator = [] {
    return Result<std::unique_ptr<measure::Evaluator>>(std::make_unique<Slow>());
  };
  TunerOptions options = options_of(1000);
  options.seconds = 0.05;
  options.batch = 50;
  Tuner tuner(std::move(made.tasks), options);
  EXPECT_EQ(*tuner.run(), search::Stop::Time);
  EXPECT_GE(tuner.trials(), 1);
  EXPECT_LE(tuner.trials(), 3);
  // What was not reached is no trial: neither counted nor told to the searcher.
  EXPECT_EQ(tuner.states()[0].trials.size(), static_cast<size_t>(tuner.trials()));
  EXPECT_EQ(tuner.tasks()[0].searcher->history().trials().size(),
            static_cast<size_t>(tuner.trials()));
}

TEST(Tuner, GoesOnToTheNextSpaceOfATask) {
  Made made = two_tasks("random");
  made.tasks.pop_back();
  int asked = 0;
  made.tasks[0].widen = [&asked](TunerTask& task) -> Result<bool> {
    if (asked++ > 0) return false;
    task.space_name = "more splits";
    task.searcher = search::random_searcher(task.space->space(), 9);
    return true;
  };
  std::vector<records::Record> kept;
  Tuner tuner(std::move(made.tasks), options_of(1000, &kept));
  EXPECT_EQ(*tuner.run(), search::Stop::Exhausted);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(tuner.states()[0].spaces, (std::vector<std::string>{"splits", "more splits"}));
  EXPECT_EQ(tuner.trials(), 256);
  std::set<std::string> points;
  for (const records::Record& record : kept) points.insert(record.point);
  EXPECT_TRUE(points.contains("splits: factor=5 unroll=no"));
  EXPECT_TRUE(points.contains("more splits: factor=5 unroll=no"));
}

TEST(Tuner, TriesTheHeaviestKernelInUseFirst) {
  Made made = two_tasks();
  made.tasks[0].spare = true;  // dearer, but no model runs it
  Tuner tuner(std::move(made.tasks), options_of(8));
  ASSERT_TRUE(tuner.run());
  EXPECT_EQ(tuner.states()[0].trials.size(), 0u);
  EXPECT_EQ(tuner.states()[1].trials.size(), 8u);
}

TEST(Tuner, GoesOnWhereOneTaskCannotBeMeasured) {
  Made made = two_tasks();
  made.tasks[0].evaluator = [] {
    return Result<std::unique_ptr<measure::Evaluator>>(
        fail(ErrorKind::Tool, "no worker", "it died"));
  };
  Tuner tuner(std::move(made.tasks), options_of(30));
  ASSERT_TRUE(tuner.run());
  EXPECT_EQ(tuner.states()[0].problem, "no worker: it died");
  EXPECT_EQ(tuner.states()[0].trials.size(), 0u);
  EXPECT_EQ(tuner.states()[1].trials.size(), 30u);
}

TEST(Transfer, FindsPointsByTheirText) {
  const search::Space space({search::split_decision("C.i", 24, 2),
                             search::choice_decision("at", {"C.i", "none at all"}),
                             SplitSpace::factors()});
  for (int64_t i = 0; i < static_cast<int64_t>(space.size()); i += 7)
    EXPECT_EQ(space.find(space.text(space.at(i))), space.at(i));
  EXPECT_FALSE(space.find("C.i=5x5 at=C.i factor=3"));
  EXPECT_FALSE(space.find(""));
  const search::Point near = nearest_point(space, "C.i=14x2 at=none at all factor=70");
  EXPECT_EQ(space.text(near), "C.i=12x2 at=none at all factor=64");
}

// Sizes of tiles stay; the longest loop outside the innermost goes over more or fewer of them.
TEST(Transfer, TilesKeepTheirSizes) {
  const search::Space space({search::split_decision("h", 28, 4), search::split_decision("w", 28, 4),
                             search::split_decision("k", 8, 4),
                             search::split_decision("c", 32, 4)});
  EXPECT_EQ(space.text(nearest_point(space, "h=1x1x28x2 w=1x1x4x14 k=1x1x4x1 c=1x1x1x4")),
            "h=1x1x14x2 w=1x1x2x14 k=1x1x8x1 c=1x1x1x32");
  EXPECT_EQ(space.text(nearest_point(space, "h=7x1x2x2 w=2x2x1x7 k=2x1x1x2 c=4x1x2x8")),
            "h=7x1x2x2 w=2x2x1x7 k=4x1x1x2 c=2x1x2x8");
}

TEST(Transfer, StartsFromTheNearestShapes) {
  const Func a = small_task("a", 640).func, b = small_task("b", 320).func;
  EXPECT_NEAR(*shape_distance(records::workload_text(a), records::workload_text(b)), 4,
              0.1);  // two shapes, two loops
  EXPECT_FALSE(shape_distance(records::workload_text(a), "func f() {\n}\n"));

  const auto store = *records::open_store(":memory:");
  const SplitSpace space;
  for (const int64_t extent : {640, 64}) {
    const measure::Task task = small_task("add", extent);
    ASSERT_TRUE(store->add_workload(task.key(), records::workload_text(task.func)));
    for (int f = 1; f <= 3; ++f) {
      records::Record record;
      record.workload = task.key();
      record.target = task.target_key();
      record.point = fmt::format("splits: factor={} unroll=yes", extent / 32 + f);
      record.outcome = "ok";
      record.cost = 10 - f;
      ASSERT_TRUE(store->add(record));
    }
  }
  const auto [points, machine] = *transferred_points(
      *store, *ProgramsAlike::read(*store), small_task("new", 600), space.space(), "splits", 2);
  EXPECT_EQ(machine, "");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(space.space().text(points[0]), "factor=23 unroll=yes");
  EXPECT_EQ(space.space().text(points[1]), "factor=5 unroll=yes") << "the best of the other shape";
  EXPECT_TRUE(transferred_points(*store, *ProgramsAlike::read(*store), small_task("new", 600),
                                 space.space(), "other", 2)
                  ->points.empty());
}

TEST(Transfer, ProgramsOfTheStructureTeachAModel) {
  const auto store = *records::open_store(":memory:");
  const auto add = [&](int64_t extent, int count, const std::string& compiler) {
    measure::Task task = small_task("add", extent);
    ASSERT_TRUE(store->add_workload(task.key(), records::workload_text(task.func)));
    for (int i = 0; i < count; ++i) {
      records::Record record = task.record();
      record.workload = task.key();
      record.kind = records::kScheduleKind;
      record.compiler = compiler;
      record.point = fmt::format("splits: {}", i);
      record.outcome = "ok";
      record.cost = 100 + (i * 7) % count;
      ASSERT_TRUE(store->add(record));
    }
  };
  add(640, 100, "c");
  add(64, 3, "c");
  add(600, 50, "c");    // its own
  add(320, 50, "old");  // of another compiler
  add(620, 1, "c");     // nothing to compare
  const auto programs =
      *known_programs(*store, *ProgramsAlike::read(*store), small_task("new", 600), "c");
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0].measured.size(), 48u) << "640 is nearer than 64";
  EXPECT_EQ(programs[0].measured.front().second, 100);
  EXPECT_EQ(programs[0].measured.back().second, 199) << "from the cheapest to the dearest";
  EXPECT_EQ(programs[1].measured.size(), 3u);
}

TEST(Transfer, AnotherMachinesRecordsAreAStartOnly) {
  const auto store = *records::open_store(":memory:");
  const SplitSpace space;
  measure::Task here = small_task("add", 640);
  cpu_of(here).machine = "1a2b3c4d";
  const auto add = [&](const measure::Task& task, const char* point, double cost) {
    records::Record record = task.record();
    record.workload = task.key();
    record.point = fmt::format("splits: {}", point);
    record.outcome = "ok";
    record.cost = cost;
    ASSERT_TRUE(store->add(record));
  };
  const auto start = [&] {
    return *transferred_points(*store, *ProgramsAlike::read(*store), here, space.space(), "splits",
                               1);
  };
  measure::Task there = here;
  cpu_of(there).machine = "";
  add(there, "factor=20 unroll=yes", 1);  // of any machine: it may be this one's level
  cpu_of(there).machine = "ffff0000";
  there.unit = "cycles";
  add(there, "factor=20 unroll=yes", 1);  // of a simulator
  there.unit = "ns";
  const hw::Target cpu = there.target;
  there.target = hw::as_target(*hw::find_gpu_target("opencl"));
  there.device = {"opencl:0", "a GPU"};
  add(there, "factor=20 unroll=yes", 1);  // of another kind of device
  EXPECT_TRUE(start().points.empty());
  there.target = cpu;
  add(there, "factor=4 unroll=yes", 7);
  add(there, "factor=5 unroll=no", 6);
  ASSERT_EQ(start().points.size(), 1u);
  EXPECT_EQ(space.space().text(start().points[0]), "factor=5 unroll=no");
  EXPECT_EQ(start().machine, "ffff0000");
  cpu_of(here).machine.clear();
  EXPECT_TRUE(start().points.empty()) << "no machine in particular";
}

}  // namespace
}  // namespace tilewright::tune
