#include "tilewright/driver/tuning/final_race.h"

#include <gtest/gtest.h>

#include "tilewright/search/searchers.h"
#include "tilewright/tensor/text.h"

namespace tilewright::driver {
namespace {

using measure::OutcomeKind;
using measure::Reading;

const char* kProgram = "tensor add(A: f32[64]) {\n  C[i in 64] = A[i] + 1\n  return C\n}\n";

/// Splits by 1, 2, 3 or 4.
class Splits final : public tune::ScheduleSpace {
 public:
  const search::Space& space() const override { return space_; }
  Result<schedule::Trace> trace(const search::Point& point) const override {
    return schedule::Trace{schedule::Split{"C.i", point[0] + 1}};
  }
  double prior(const search::Point&) const override { return 1; }
  std::vector<double> terms(const search::Point&) const override { return {}; }

 private:
  search::Space space_{{search::choice_decision("factor", {"1", "2", "3", "4"})}};
};

/// 100 ns without tuning; 90, 80, 120 and 99 ns for the points.
class Costs final : public measure::Evaluator {
 public:
  std::vector<Reading> evaluate(const std::vector<measure::Candidate>& candidates) override {
    std::vector<Reading> readings;
    for (const measure::Candidate& candidate : candidates) {
      const double costs[] = {90, 80, 120, 99};
      const double cost =
          candidate.point.empty() ? 100 : costs[static_cast<size_t>(candidate.point[0])];
      readings.push_back({OutcomeKind::Ok, "", cost, cost - 1, 0, 7});
    }
    return readings;
  }
};

/// Answers every race with the same ratios, and remembers how many ran.
class Judge final : public measure::Measurer {
 public:
  explicit Judge(std::vector<double> ratios) : ratios_(std::move(ratios)) {}
  Result<std::unique_ptr<measure::Evaluator>> evaluator(const measure::Task&) override {
    return fail(ErrorKind::Tool, "not asked for");
  }
  Result<std::vector<double>> race(const measure::Task&, const std::vector<schedule::Trace>& traces,
                                   int) override {
    runners = traces.size();
    if (ratios_.empty()) return fail(ErrorKind::Tool, "a schedule ended the worker");
    ratios_.resize(traces.size(), search::kInvalid);
    return ratios_;
  }
  std::vector<measure::Raced> races(const std::vector<measure::Race>& races, int rounds,
                                    const std::function<bool()>& more) override {
    at_a_time.push_back(races.size());
    return Measurer::races(races, rounds, more);
  }
  size_t runners = 0;
  std::vector<size_t> at_a_time;  ///< races, of each time that some were asked for

 private:
  std::vector<double> ratios_;
};

/// A search for some kernels that has ended.
std::unique_ptr<tune::Tuner> tuned(const std::vector<std::string>& programs) {
  std::vector<tune::TunerTask> tasks;
  for (const std::string& program : programs) {
    tune::TunerTask task;
    task.task.func = *tensor::parse_tensor_file(program);
    task.task.name = task.task.func.name;
    task.space_name = "splits";
    task.space = std::make_shared<Splits>();
    task.searcher = search::random_searcher(task.space->space(), 1);
    task.evaluator = [] {
      return Result<std::unique_ptr<measure::Evaluator>>(std::make_unique<Costs>());
    };
    tasks.push_back(std::move(task));
  }
  auto tuner = std::make_unique<tune::Tuner>(std::move(tasks), tune::TunerOptions());
  EXPECT_TRUE(tuner->run());
  return tuner;
}

struct FinalRace : testing::Test {
  Verdict decide(measure::Measurer* measurer, bool time = true) {
    return final_races(*tuner, "compiler 1", "today", measurer, [&] { return time; }).at(0);
  }
  std::unique_ptr<tune::Tuner> tuner = tuned({kProgram});
};

TEST_F(FinalRace, A8_KeepsWhatWinsByMoreThanNoise) {
  Judge judge({1, 0.95, 0.9, 1.2});
  const Verdict verdict = decide(&judge);
  EXPECT_EQ(judge.runners, 4u);  // the rules' schedule and the three that read faster
  EXPECT_TRUE(verdict.better);
  EXPECT_EQ(verdict.record.schedule, "split(loop=C.i, factor=1)\n");  // second by its reading
  EXPECT_EQ(verdict.record.point, "splits: factor=1");
  EXPECT_EQ(verdict.record.cost, 90);
  EXPECT_EQ(verdict.record.searcher, "race");
  EXPECT_EQ(verdict.record.kind, records::kRaceKind);
  EXPECT_EQ(verdict.record.unit, "ns");
  EXPECT_EQ(verdict.record.when, "today");
  Judge close({1, 0.995, 1.1, 1.2});
  EXPECT_FALSE(decide(&close).better);
}

/// So devices of a fleet can run them side by side.
TEST(FinalRaces, AreAskedForAllAtATime) {
  const std::string program = kProgram;
  std::string other = program;
  other.replace(other.find("+ 1"), 3, "+ 2");
  const auto tuner = tuned({program, other});
  Judge judge({1, 0.95, 0.9, 1.2});
  int left = 1;  // time for one race
  const std::vector<Verdict> verdicts =
      final_races(*tuner, "compiler 1", "today", &judge, [&] { return left-- > 0; });
  EXPECT_EQ(judge.at_a_time, std::vector<size_t>{2});
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].record.schedule, "split(loop=C.i, factor=1)\n");  // as it was raced
  EXPECT_EQ(verdicts[1].record.schedule, "split(loop=C.i, factor=2)\n");  // as it was read
  EXPECT_NE(verdicts[0].record.workload, verdicts[1].record.workload);
}

TEST_F(FinalRace, KeepsTheRulesScheduleWhereTheRaceFails) {
  Judge broken({});
  const Verdict verdict = decide(&broken);
  EXPECT_FALSE(verdict.better);
  EXPECT_TRUE(verdict.known);
  EXPECT_EQ(verdict.record.schedule, "");  // no steps
  EXPECT_EQ(verdict.record.cost, 100);
}

TEST_F(FinalRace, GoesByReadingsWithoutTimeOrDevice) {
  EXPECT_EQ(decide(nullptr).record.schedule, "split(loop=C.i, factor=2)\n");
  Judge judge({1, 1.5, 1.5, 1.5});
  const Verdict late = decide(&judge, false);
  EXPECT_EQ(judge.runners, 0u);
  EXPECT_EQ(late.record.schedule, "split(loop=C.i, factor=2)\n");
  EXPECT_EQ(late.ratio, 0.8);
}

TEST_F(FinalRace, AnswersByProgramWhateverItsName) {
  std::vector<Verdict> verdicts = {decide(nullptr)};
  Func func = *tensor::parse_tensor_file(kProgram);
  func.name = "another_name";
  EXPECT_EQ(find_among(verdicts)(func)->cost, 80);
  give_up(verdicts[0]);
  EXPECT_EQ(find_among(verdicts)(func)->cost, 100);
  std::string other = kProgram;
  other.replace(other.find("+ 1"), 3, "+ 2");
  EXPECT_FALSE(find_among(verdicts)(*tensor::parse_tensor_file(other)));
}

}  // namespace
}  // namespace tilewright::driver
