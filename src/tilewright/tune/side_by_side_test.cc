// The tuner with several batches out: a judge that is done with them in any order.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tilewright/base/rng.h"
#include "tilewright/search/searchers.h"
#include "tilewright/tensor/text.h"
#include "tilewright/tune/methods.h"
#include "tilewright/tune/tuner.h"

namespace tilewright::tune {
namespace {

/// Two splits of one loop; a point of which the parts multiply to more than 64 has no schedule.
class GridSpace final : public ScheduleSpace {
 public:
  GridSpace() : space_({side("a"), side("b")}) {}
  static search::Decision side(const char* name) {
    std::vector<search::DecisionValue> values;
    for (int f = 1; f <= 12; ++f) values.push_back({std::to_string(f), {static_cast<double>(f)}});
    return search::ordered_decision(name, values);
  }
  const search::Space& space() const override { return space_; }
  Result<schedule::Trace> trace(const search::Point& point) const override {
    if ((point[0] + 1) * (point[1] + 1) > 64) return fail(ErrorKind::NotApplicable, "too large");
    return schedule::Trace{schedule::Split{"C.i", point[0] + 1},
                           schedule::Split{"C.i.i", point[1] + 1}};
  }
  double prior(const search::Point& point) const override { return 100 + point[0]; }
  std::vector<double> terms(const search::Point& point) const override {
    return {static_cast<double>(point[0])};
  }

 private:
  search::Space space_;
};
constexpr int64_t kGridPoints = 144;

/// Judges by a formula. Which of the batches that are out is done next is drawn.
class DrawnOrder final : public measure::BatchEvaluator {
 public:
  DrawnOrder(int devices, uint64_t seed) : devices_(devices), rng_(seed) {}

  int devices() const override { return devices_; }
  int64_t begin(const measure::Task& task,
                const std::vector<measure::Candidate>& candidates) override {
    EXPECT_FALSE(candidates.empty());
    EXPECT_TRUE(!candidates[0].text.empty() || candidates.size() == 1) << "a rule is alone";
    measure::JudgedBatch batch;
    batch.id = ++last_;
    batch.seconds = seconds_each * static_cast<double>(candidates.size());
    for (const measure::Candidate& candidate : candidates) {
      if (!candidate.text.empty()) {
        EXPECT_TRUE(asked.insert(task.name + candidate.text).second);
      }
      double cost = 1000;
      for (const int value : candidate.point) cost -= 10 * value;
      if (loses)
        batch.readings.push_back({measure::OutcomeKind::Lost, "the worker died", 0, 0, 0, 0});
      else
        batch.readings.push_back({measure::OutcomeKind::Ok, "", cost, cost - 1, 0.01, 7});
    }
    order.push_back(task.name);
    sizes.push_back(candidates.size());
    out_.push_back(std::move(batch));
    most_out = std::max(most_out, out_.size());
    return last_;
  }
  Result<std::optional<measure::JudgedBatch>> wait(double) override {
    if (out_.empty() || stuck) return std::optional<measure::JudgedBatch>();
    const auto at = out_.begin() + rng_.below(static_cast<int64_t>(out_.size()));
    std::optional<measure::JudgedBatch> done = std::move(*at);
    out_.erase(at);
    return done;
  }
  void cancel() override {
    cancelled += out_.size();
    out_.clear();
  }

  std::vector<std::string> order;  ///< of tasks whose batches were begun
  std::vector<size_t> sizes;
  std::set<std::string> asked;
  size_t most_out = 0, cancelled = 0;
  double seconds_each = 0;
  bool stuck = false;  ///< nothing is ever done
  bool loses = false;  ///< all that it is given

 private:
  int devices_;
  Rng rng_;
  std::vector<measure::JudgedBatch> out_;
  int64_t last_ = 0;
};

std::vector<TunerTask> grid_tasks(int count, const std::string& method = "random") {
  std::vector<TunerTask> tasks;
  for (int i = 0; i < count; ++i) {
    TunerTask task;
    task.task.name = fmt::format("t{} ", i);
    task.task.func = *tensor::parse_tensor_file(fmt::format(
        "tensor add(A: f32[n]) where n = {} {{\n  C[i in n] = A[i] + 1\n  return C\n}}\n",
        64 * (i + 1)));
    task.space_name = "grid";
    task.space = std::make_shared<GridSpace>();
    task.searcher = *make_searcher(method, *task.space, task.task, 5);
    task.expected = 1000 - i;
    task.evaluator = []() -> Result<std::unique_ptr<measure::Evaluator>> {
      ADD_FAILURE() << "no task judges for itself";
      return fail(ErrorKind::Tool, "none");
    };
    tasks.push_back(std::move(task));
  }
  return tasks;
}

TunerOptions beside(DrawnOrder& judge, int64_t trials) {
  TunerOptions options;
  options.trials = trials;
  options.batches = &judge;
  return options;
}

/// Sixteen batches are out; four full ones of eight are shared out among them.
TEST(SideBySide, OfEachTaskAboutOneFullBatchIsOut) {
  DrawnOrder judge(8, 1);
  Tuner tuner(grid_tasks(4), beside(judge, 150));
  EXPECT_EQ(*tuner.run(), search::Stop::Trials);
  EXPECT_EQ(judge.most_out, 16u);
  EXPECT_EQ(*std::max_element(judge.sizes.begin(), judge.sizes.end()), 2u);
}

TEST(SideBySide, SpendsAllTrialsInWhateverOrderBatchesAreDone) {
  for (const char* method : {"ours", "evolution", "q"})
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      DrawnOrder judge(3, seed);
      Tuner tuner(grid_tasks(4, method), beside(judge, 150));
      EXPECT_EQ(*tuner.run(), search::Stop::Trials);
      EXPECT_EQ(tuner.trials(), 150);
      EXPECT_EQ(tuner.in_flight(), 0);
      EXPECT_EQ(judge.most_out, 6u);  // two per device
      EXPECT_EQ(judge.cancelled, 0u);
      for (size_t i = 0; i < 4; ++i) {
        const TaskState& state = tuner.states()[i];
        EXPECT_EQ(state.rule.cost, 1000);
        EXPECT_GE(state.trials.size(), 16u) << "all get their first trials";
        EXPECT_EQ(tuner.tasks()[i].searcher->history().trials().size(), state.trials.size());
        EXPECT_TRUE(tuner.tasks()[i].searcher->out().empty());
        std::set<std::string> points;
        for (const TrialLog& trial : state.trials) {
          EXPECT_TRUE(points.insert(trial.point).second) << trial.point;
          const search::Point point =
              *tuner.tasks()[i].space->space().find(std::string_view(trial.point).substr(6));
          if (trial.reading.kind == measure::OutcomeKind::Ok) {
            EXPECT_EQ(trial.reading.cost, 1000 - 10 * (point[0] + point[1])) << "another's reading";
          }
        }
      }
    }
}

TEST(SideBySide, OtherTasksComeFirst) {
  DrawnOrder judge(2, 1);
  Tuner tuner(grid_tasks(4), beside(judge, 64));
  ASSERT_TRUE(tuner.run());
  // The rules of the four, the most expensive first; then batches of all before a second one of
  // any.
  const std::vector<std::string> first(judge.order.begin(), judge.order.begin() + 3);
  EXPECT_EQ(first, (std::vector<std::string>{"t0 ", "t1 ", "t2 "}));
  for (const TaskState& state : tuner.states()) EXPECT_EQ(state.trials.size(), 16u);
}

TEST(SideBySide, BatchesFillTwoSecondsAndShrinkWhereTasksAreFew) {
  DrawnOrder few(16, 1);
  Tuner one(grid_tasks(1), beside(few, 60));
  ASSERT_TRUE(one.run());
  EXPECT_EQ(*std::max_element(few.sizes.begin(), few.sizes.end()), 1u);
  DrawnOrder quick(1, 1);
  quick.seconds_each = 0.1;
  Tuner two(grid_tasks(2), beside(quick, 140));
  ASSERT_TRUE(two.run());
  EXPECT_GE(*std::max_element(quick.sizes.begin(), quick.sizes.end()), 16u);
  EXPECT_LE(*std::max_element(quick.sizes.begin(), quick.sizes.end()), 20u);
}

TEST(SideBySide, GivesUpWhatIsOutWhenTimeIsUp) {
  DrawnOrder judge(2, 1);
  TunerOptions options = beside(judge, 1000);
  options.seconds = 1;
  options.progress = [&] { judge.stuck = judge.asked.size() >= 40; };
  Tuner tuner(grid_tasks(2), std::move(options));
  EXPECT_EQ(*tuner.run(), search::Stop::Time);
  EXPECT_EQ(judge.cancelled, 4u);
  EXPECT_EQ(tuner.in_flight(), 0);
  EXPECT_LT(tuner.seconds(), 30);
  for (const TunerTask& task : tuner.tasks()) EXPECT_TRUE(task.searcher->out().empty());
}

TEST(SideBySide, OpensTheNextSpaceWhenAllOfOneIsTold) {
  DrawnOrder judge(4, 2);
  std::vector<TunerTask> tasks = grid_tasks(1);
  int asked = 0;
  tasks[0].widen = [&asked](TunerTask& task) -> Result<bool> {
    EXPECT_EQ(task.searcher->history().trials().size(), static_cast<size_t>(kGridPoints));
    if (asked++ > 0) return false;
    task.space_name = "more";
    task.searcher = search::random_searcher(task.space->space(), 9);
    return true;
  };
  std::vector<records::Record> kept;
  TunerOptions options = beside(judge, 10000);
  options.keep = [&](const std::vector<records::Record>& records) {
    kept.insert(kept.end(), records.begin(), records.end());
    return Status();
  };
  Tuner tuner(std::move(tasks), std::move(options));
  EXPECT_EQ(*tuner.run(), search::Stop::Exhausted);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(tuner.trials(), 2 * kGridPoints);
  // What was judged is kept by who judged it: here are the points without a schedule, and those of
  // the second space, whose schedules are known from the first.
  const auto invalid = std::count_if(kept.begin(), kept.end(), [](const records::Record& record) {
    return record.outcome == "invalid";
  });
  EXPECT_EQ(invalid, 2 * (kGridPoints - static_cast<int64_t>(judge.asked.size())));
  EXPECT_EQ(static_cast<int64_t>(kept.size()), invalid / 2 + kGridPoints);
}

TEST(SideBySide, WhatWasLostMayBeTriedAgainByAnotherPoint) {
  DrawnOrder judge(2, 1);
  judge.loses = true;
  std::vector<TunerTask> tasks = grid_tasks(1);
  size_t before = 0;
  tasks[0].widen = [&](TunerTask& task) -> Result<bool> {
    if (before > 0) return false;
    before = judge.asked.size();
    judge.loses = false;
    task.space_name = "more";
    task.searcher = search::random_searcher(task.space->space(), 9);
    return true;
  };
  Tuner tuner(std::move(tasks), beside(judge, 10000));
  EXPECT_EQ(*tuner.run(), search::Stop::Exhausted);
  EXPECT_EQ(judge.asked.size(), 2 * before);
  EXPECT_EQ(tuner.states()[0].outcomes.at(measure::OutcomeKind::Ok), static_cast<int64_t>(before));
}

}  // namespace
}  // namespace tilewright::tune
