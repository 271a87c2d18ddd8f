#include "hand_tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "contest.h"
#include "tilewright/schedule/sketch.h"
#include "tilewright/tune/sketch_space.h"
#include "tilewright/tune/tiling_space.h"

namespace tilewright::bench {
namespace {

int64_t divisor_up_to(int64_t extent, int64_t most) {
  int64_t d = std::min(extent, most);
  while (extent % d != 0) --d;
  return d;
}

/// Four levels of a loop: `inner`, then 4, then 8, then the rest.
std::vector<double> levels(int64_t extent, int64_t inner) {
  std::vector<double> out(4);
  for (const auto& [level, most] : {std::pair<size_t, int64_t>{3, inner}, {2, 4}, {1, 8}}) {
    const int64_t factor = divisor_up_to(extent, most);
    out[level] = static_cast<double>(factor);
    extent /= factor;
  }
  out[0] = static_cast<double>(extent);
  return out;
}

/// FlexTensor's sketch without its choice of unrolling: always, up to a depth of 200.
std::string hand_sketch(const measure::Task& task) {
  std::string text = tune::tiling_sketch(task, {true});
  const size_t begin = text.find("decide unroll: ring ");
  if (begin == std::string::npos) return "";
  return text.replace(begin, text.find('\n', begin) - begin, "decide unroll: ring [[200, 1]]");
}

/// The tilings that someone tries by hand: a few sizes of the innermost tile.
std::vector<search::Point> hand_points(const search::Space& space) {
  std::vector<search::Point> points;
  for (const int64_t lanes : {8, 16, 32, 64})
    for (const int64_t rows : {1, 2, 4}) {
      search::Point point;
      // The decision before the reductions' would be the vectorised loop; give each loop of
      // sixteen or more the lanes, and the rest the rows: the last loop of the result has most.
      for (const search::Decision& decision : space.decisions()) {
        int64_t extent = 1;
        for (const double f : decision.values[0].features) extent *= static_cast<int64_t>(f);
        const std::vector<double> wanted = levels(extent, extent >= 64 ? lanes : rows);
        size_t v = 0;
        while (v < decision.values.size() && decision.values[v].features != wanted) ++v;
        point.push_back(v < decision.values.size() ? static_cast<int>(v) : 0);
      }
      if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(point);
    }
  return points;
}

double best_found(const measure::Task& task, const tune::ScheduleSpace& space, Judge& judge,
                  const std::string& method, int trials) {
  ContestOptions options;
  options.methods = {method};
  options.trials = trials, options.seeds = 1;
  const auto contest = hold_contest(task, "", space, judge, options);
  return contest ? contest->oracle() : search::kInvalid;
}

}  // namespace

Result<std::string> against_hand_tiling(const measure::Task& task, Judge& judge, int trials) {
  const std::string text = hand_sketch(task);
  if (text.empty()) return fail(ErrorKind::Usage, fmt::format("{} has no nest to tile", task.name));
  const auto hand =
      TW_TRY(tune::sketch_space(task, TW_TRY(schedule::parse_sketch(text)), {true, {}}));
  std::vector<schedule::Trace> traces;
  for (const search::Point& point : hand_points(hand->space()))
    if (auto trace = hand->trace(point)) traces.push_back(std::move(*trace));
  double by_hand = search::kInvalid;
  for (const Verdict& verdict : judge.judge(traces)) by_hand = std::min(by_hand, verdict.cost);
  const auto paper = tune::tiling_space(task, {true});
  const auto tiling = tune::tiling_space(task, {});
  const double q = best_found(task, *paper, judge, "q", trials);
  const double ours = best_found(task, *tiling, judge, "ours", trials);
  const double us = judge.rule_ns() * 1e-3;
  return fmt::format(
      "{:48} by hand {:9.1f} us ({} tilings), Q {:9.1f} us: {:.2f} times as fast, ours {:9.1f} us: "
      "{:.2f} times, rule {:9.1f} us: {:.2f} times",
      task.name, by_hand * us, traces.size(), q * us, by_hand / q, ours * us, by_hand / ours, us,
      by_hand);
}

}  // namespace tilewright::bench
