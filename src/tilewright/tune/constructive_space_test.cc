// The constructive space: its best point by the model is the rules' schedule, and every point that
// gives a schedule keeps the program's meaning.
#include "tilewright/tune/constructive_space.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/tensor/op.h"

namespace tilewright::tune {
namespace {

using Ints = std::vector<int64_t>;

rules::OpCase conv(int64_t channels, int64_t filters, Shape size, int64_t kernel,
                   int64_t stride = 1) {
  const int64_t pad = kernel / 2;
  return {"tilewright",
          "ConvBlocked",
          {{1, channels / 4, size[0], size[1], 4},
           {filters / 4, channels / 4, kernel, kernel, 4, 4},
           {filters}},
          {{"pads", Ints{pad, pad, pad, pad}}, {"strides", Ints{stride, stride}}}};
}

std::vector<rules::OpCase> cases() {
  return {conv(8, 16, {9, 11}, 3),
          conv(4, 24, {7, 7}, 3),
          conv(8, 8, {12, 12}, 1),
          conv(4, 8, {8, 9}, 3, 2),
          {"", "MatMul", {{37, 20}, {20, 24}}, {}},
          {"", "MatMul", {{64, 12}, {12, 20}}, {}},
          {"", "MatMul", {{3, 8, 12}, {3, 12, 20}}, {}},
          {"tilewright", "GemmPacked", {{12, 20}, {5, 20, 4}, {18}}, {{"n", int64_t{18}}}},
          {"tilewright",
           "DepthwiseConvBlocked",
           {{1, 3, 9, 12, 4}, {3, 3, 3, 4}, {12}},
           {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}}},
          {"tilewright",
           "WinogradConvBlocked",
           {{1, 2, 8, 8, 4}, {3, 4, 4, 8, 4}, {12}},
           {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}, {"m", int64_t{2}}}},
          {"", "Softmax", {{6, 20}}, {{"axis", int64_t{-1}}}}};
}

measure::Task task_of(const rules::OpCase& c, int threads) {
  hw::CpuTarget target;
  target.vector_bytes = 16;
  target.vector_registers = 32;
  return {c.op, rules::func_of(c), hw::as_target(target), threads, 1};
}

/// The point that a searcher would take first.
search::Point best_point(const ScheduleSpace& space) {
  search::Point best;
  double least = search::kInvalid;
  for (int64_t i = 0; i < static_cast<int64_t>(space.space().size()); ++i) {
    const search::Point point = space.space().at(i);
    const double prior = space.prior(point);
    if (prior < least || (prior == least && point < best)) least = prior, best = point;
  }
  return best;
}

TEST(ConstructiveSpace, ItsBestPointIsTheRulesSchedule) {
  for (const rules::OpCase& c : cases())
    for (const int threads : {1, 2}) {
      const measure::Task task = task_of(c, threads);
      const std::unique_ptr<ScheduleSpace> space = constructive_space(task);
      const search::Point best = best_point(*space);
      ASSERT_FALSE(best.empty()) << c.op;
      const Result<schedule::Trace> trace = space->trace(best);
      ASSERT_TRUE(trace) << c.op << to_string(trace.error());
      EXPECT_EQ(schedule::print(*trace),
                schedule::print(rules::choose_schedule(task.func, task.cpu(), threads).trace))
          << c.op << " " << threads << ": " << space->space().text(best);
    }
}

TEST(ConstructiveSpaceSlow, RandomPointsKeepTheMeaning) {
  int valid = 0, all = 0;
  for (const rules::OpCase& c : cases()) {
    const measure::Task task = task_of(c, 2);
    const std::unique_ptr<ScheduleSpace> space = constructive_space(task);
    const interp::Arguments arguments = rules::quarters(task.func);
    const auto expected = interp::run(task.func, arguments);
    ASSERT_TRUE(expected) << c.op;
    const Array& want = expected->outputs.begin()->second;
    Rng rng(3);
    for (int i = 0; i < 12; ++i) {
      const search::Point point = space->space().random(rng);
      const std::string what = c.op + ": " + space->space().text(point);
      ++all;
      const Result<schedule::Trace> trace = space->trace(point);
      EXPECT_TRUE(trace || !std::isfinite(space->prior(point))) << what;
      if (!trace) continue;
      ++valid;
      const Result<Func> scheduled = schedule::replay(task.func, *trace);
      ASSERT_TRUE(scheduled) << what << to_string(scheduled.error());
      interp::Options check;
      check.check = true;
      const auto actual = interp::run(*scheduled, arguments, check);
      ASSERT_TRUE(actual) << what << to_string(actual.error());
      EXPECT_TRUE(actual->findings.empty()) << what << actual->findings[0].text;
      const Array& got = actual->outputs.begin()->second;
      for (int64_t k = 0; k < want.size(); ++k)
        ASSERT_NEAR(want.get(k), got.get(k), 1e-4 * (1 + std::abs(want.get(k)))) << what;
    }
  }
  EXPECT_GE(valid, 0.95 * all);
}

TEST(ConstructiveSpace, PointsDifferAndHaveAsManyTerms) {
  const measure::Task task = task_of(cases()[0], 2);
  const std::unique_ptr<ScheduleSpace> space = constructive_space(task);
  EXPECT_GT(space->space().size(), 100);
  EXPECT_LT(space->space().size(), 20000);
  std::set<std::string> traces;
  Rng rng(5);
  const size_t terms = space->terms(space->space().at(0)).size();
  for (int i = 0; i < 20; ++i) {
    const search::Point point = space->space().random(rng);
    EXPECT_EQ(space->terms(point).size(), terms);
    const Result<schedule::Trace> trace = space->trace(point);
    if (trace) traces.insert(schedule::print(*trace));
  }
  EXPECT_GT(traces.size(), 10);
}

TEST(ConstructiveSpace, TilesOfAnySizeTakeBlocksOfRows) {
  const measure::Task task = task_of({"", "MatMul", {{64, 12}, {12, 20}}, {}}, 2);
  const std::unique_ptr<ScheduleSpace> space = constructive_space(task);
  for (int64_t i = 0; i < static_cast<int64_t>(space->space().size()); ++i) {
    const search::Point point = space->space().at(i);
    EXPECT_TRUE(std::isfinite(space->prior(point))) << space->space().text(point);
  }
}

/// Of `tiles` the nearest to `from` with more (`up`) or fewer rows of as many columns, or with more
/// or fewer columns and then the least change of rows; `from` itself where there is none.
size_t nearest_tile(const std::vector<search::DecisionValue>& tiles, size_t from, bool by_rows,
                    bool up) {
  const auto size = [&](size_t i) {
    const std::vector<double>& f = tiles[i].features;  // rows, columns, rows of the second axis
    return std::pair(f[0] * f[2], f[1]);
  };
  size_t best = from;
  std::pair<double, double> least{};
  for (size_t i = 0; i < tiles.size(); ++i) {
    const double rows = size(i).first - size(from).first;
    const double columns = size(i).second - size(from).second;
    const double along = by_rows ? rows : columns;
    if ((by_rows && columns != 0) || along == 0 || (along > 0) != up) continue;
    const std::pair distance(std::abs(along), std::abs(rows));
    if (best == from || distance < least) best = i, least = distance;
  }
  return best;
}

TEST(ConstructiveSpace, MovesGoToTheNearestTile) {
  for (const rules::OpCase& c : {cases()[0], cases()[4]}) {
    const std::unique_ptr<ScheduleSpace> space = constructive_space(task_of(c, 2));
    const search::Decision& tile = space->space().decisions()[0];
    ASSERT_EQ(tile.name, "tile");
    for (size_t from = 0; from < tile.values.size(); ++from)
      for (const bool by_rows : {true, false})
        for (const bool up : {true, false}) {
          const size_t to = static_cast<size_t>(tile.moves[(by_rows ? 0 : 2) + (up ? 0 : 1)][from]);
          const size_t want = nearest_tile(tile.values, from, by_rows, up);
          EXPECT_EQ(tile.values[to].text, tile.values[want].text) << tile.values[from].text;
        }
  }
}

/// Decisions of which no value makes another schedule than the others.
std::set<std::string> idle_decisions(const ScheduleSpace& space) {
  std::set<std::string> idle;
  const std::vector<search::Decision>& decisions = space.space().decisions();
  for (size_t d = 0; d < decisions.size(); ++d) {
    bool matters = false;
    for (int64_t i = 0; !matters && i < static_cast<int64_t>(space.space().size()); ++i) {
      const search::Point point = space.space().at(i);
      const Result<schedule::Trace> own = space.trace(point);
      for (search::Point other = point; own && !matters;) {
        if (++other[d] == static_cast<int>(decisions[d].values.size())) break;
        const Result<schedule::Trace> trace = space.trace(other);
        matters = trace && schedule::print(*trace) != schedule::print(*own);
      }
    }
    if (!matters) idle.insert(decisions[d].name);
  }
  return idle;
}

TEST(ConstructiveSpace, EveryDecisionAboutWinogradMatters) {
  const rules::OpCase conv = {
      "tilewright",
      "WinogradConvBlocked",
      {{1, 2, 16, 16, 4}, {4, 4, 4, 8, 4}, {16}},
      {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}, {"m", int64_t{2}}}};
  const std::unique_ptr<ScheduleSpace> space = constructive_space(task_of(conv, 2));
  EXPECT_EQ(space->space().decisions().size(), 4u);
  EXPECT_EQ(idle_decisions(*space), std::set<std::string>{});
  // No plan seems as fast as the rule's own.
  const double best = space->prior(best_point(*space));
  std::set<std::string> fastest;
  for (int64_t i = 0; i < static_cast<int64_t>(space->space().size()); ++i) {
    const search::Point point = space->space().at(i);
    if (space->prior(point) > best * 1.0005) continue;
    const Result<schedule::Trace> trace = space->trace(point);
    if (trace) fastest.insert(schedule::print(*trace));
  }
  EXPECT_EQ(fastest.size(), 1u);
}

TEST(ConstructiveSpace, DotProductsAreTiledAsTheirGroupsAre) {
  tensor::OpCall call;
  call.domain = "tilewright";
  call.op = "GemmDotPacked";
  call.attrs.values = {{"n", int64_t{96}}};
  call.inputs = {{true, DType::U8, {13, 28}, {}}, {true, DType::I8, {6, 7, 16, 4}, {}}};
  const Result<Func> func = tensor::op_func(call);
  ASSERT_TRUE(func) << to_string(func.error());
  hw::CpuTarget target = *hw::find_target("x86-64-v4");
  target.features.push_back("+avx512vnni");
  const measure::Task task{"dots", *func, hw::as_target(target), 2, 1};
  const std::unique_ptr<ScheduleSpace> space = constructive_space(task);
  const auto dots = [](const schedule::Trace& trace) {
    return std::count_if(trace.begin(), trace.end(), [](const schedule::Step& step) {
      return std::holds_alternative<schedule::Tensorize>(step);
    });
  };
  const Result<schedule::Trace> best = space->trace(best_point(*space));
  ASSERT_TRUE(best) << to_string(best.error());
  EXPECT_EQ(schedule::print(*best), schedule::print(rules::default_trace(*func, target, 2)));
  Rng rng(3);
  int valid = 0;
  for (int i = 0; i < 40; ++i)
    if (const auto trace = space->trace(space->space().random(rng))) {
      EXPECT_GE(dots(*trace), 1);
      ++valid;
    }
  EXPECT_GE(valid, 38);
}

TEST(ConstructiveSpace, ElementwiseKernelsHaveFewPoints) {
  const measure::Task task = task_of({"", "Relu", {{64, 36}}, {}}, 2);
  const std::unique_ptr<ScheduleSpace> space = constructive_space(task);
  EXPECT_GT(space->space().size(), 1);
  EXPECT_LE(space->space().size(), 16);
  for (int64_t i = 0; i < static_cast<int64_t>(space->space().size()); ++i)
    EXPECT_TRUE(space->trace(space->space().at(i))) << i;
}

}  // namespace
}  // namespace tilewright::tune
