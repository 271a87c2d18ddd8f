// The constructive space of contractions: register tile, order of the loops around it, prefetch
// distance, unrolling of the reduction, pieces per thread.
//
//   tile 6x4, order rows outside, ahead 64, steps auto, pieces auto   ->   one schedule
//
// Tiles and orders are those that the cost model (cost/tile_space.h) knows for the kernel's largest
// contraction, and it predicts the time of every point. It does not see some decisions: there the
// rule's own value counts as slightly faster (kDoubt).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "tilewright/cost/tile_space.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/rules/cpu/dot.h"
#include "tilewright/rules/cpu/winograd.h"
#include "tilewright/tune/constructive_space.h"

namespace tilewright::tune {
namespace {

using cost::TilePoint;

/// Steps written out and pieces per thread that are tried besides the rule's own (0).
constexpr int64_t kUnrolls[] = {0, 1, 2, 4, 8};
constexpr int64_t kPieces[] = {0, 1, 2, 32};
/// Distances of prefetches: none, and all that `usual_ahead` gives.
constexpr int64_t kAheads[] = {0, 8, 32, 64, 128};

/// Register tiles; moves go to the nearest one with more or fewer rows, more or fewer columns.
search::Decision tile_decision(const std::vector<TilePoint>& tiles) {
  search::Decision decision;
  decision.name = "tile";
  decision.moves.assign(4, {});
  for (size_t i = 0; i < tiles.size(); ++i) {
    const TilePoint& t = tiles[i];
    decision.values.push_back({fmt::format("{}x{}", t.rows * t.plane, t.columns),
                               {static_cast<double>(t.rows), static_cast<double>(t.columns),
                                static_cast<double>(t.plane)}});
    std::array<size_t, 4> to{i, i, i, i};
    std::array<int64_t, 4> far{};
    for (size_t j = 0; j < tiles.size(); ++j) {
      const int64_t rows = tiles[j].rows * tiles[j].plane - t.rows * t.plane;
      const int64_t columns = tiles[j].columns - t.columns;
      const size_t direction = columns == 0 ? (rows > 0 ? 0 : 1) : (columns > 0 ? 2 : 3);
      const int64_t distance = 1 + std::abs(rows) + 64 * std::abs(columns);
      if (j == i || (to[direction] != i && far[direction] <= distance)) continue;
      to[direction] = j;
      far[direction] = distance;
    }
    for (size_t d = 0; d < to.size(); ++d) decision.moves[d].push_back(static_cast<int>(to[d]));
  }
  return decision;
}

search::Decision order_decision(const std::string& name,
                                const std::vector<cost::LoopOrder>& orders) {
  std::vector<search::DecisionValue> values;
  for (const cost::LoopOrder& order : orders) {
    const std::string text = order.rows_outside ? "rows outside"
                             : order.block == 0 ? "columns outside"
                                                : fmt::format("blocks of {}", order.block);
    values.push_back({text, {order.rows_outside ? 1.0 : 0.0, static_cast<double>(order.block)}});
  }
  return search::ordered_decision(name, values);
}

class TileRuleSpace final : public RuleSpace {
 public:
  TileRuleSpace(const measure::Task& task, cost::Contraction contraction, bool dots)
      : task_(task),
        contraction_(std::move(contraction)),
        dots_(dots),
        tiles_(cost::register_tiles(contraction_, task.cpu(), task.threads)),
        orders_(cost::loop_orders(contraction_, task.cpu())) {
    if (orders_.size() > 2) whole_orders_.assign(orders_.begin(), orders_.begin() + 2);
    aheads_.assign(std::begin(kAheads), std::end(kAheads));
    if (!contraction_.reuse) aheads_ = {0};
    unrolls_.assign(std::begin(kUnrolls), std::end(kUnrolls));
    pieces_ = {0};
    if (task.threads > 1) pieces_.assign(std::begin(kPieces), std::end(kPieces));
  }

  std::string name() const override { return dots_ ? "dots" : "tiles"; }

  std::vector<search::Decision> decisions() const override {
    std::vector<search::Decision> all = {tile_decision(tiles_), order_decision("order", orders_)};
    if (!whole_orders_.empty()) {
      // Tiles that take whole rows leave nothing to cut into blocks.
      all.push_back(order_decision("order of planes", whole_orders_));
      all[1].parent = all[2].parent = 0;
      for (size_t i = 0; i < tiles_.size(); ++i)
        all[can_block(tiles_[i]) ? 1 : 2].when.push_back(static_cast<int>(i));
    }
    all.push_back(number_decision("ahead", aheads_));
    all.push_back(number_decision("steps", unrolls_));
    all.push_back(number_decision("pieces", pieces_));
    return all;
  }

  Result<schedule::Trace> trace(const search::Point& values) const override {
    const TilePoint point = at(values);
    if (!dots_) return rules::trace_at(task_.func, point, task_.cpu(), task_.threads);
    if (auto trace = rules::dot_trace(task_.func, task_.cpu(), task_.threads, &point))
      return *std::move(trace);
    return fail(ErrorKind::NotApplicable,
                fmt::format("{} cannot be scheduled as {}", task_.name, cost::describe(point)),
                "its dot products do not follow that schedule");
  }

  std::optional<cost::Prediction> time(const search::Point& values) const override {
    const TilePoint point = at(values);
    TilePoint seen = point;  // as the model tells points apart
    seen.unroll = seen.pieces = 0;
    if (seen.ahead > 0) seen.ahead = cost::usual_ahead(point);
    std::optional<cost::Prediction> time = predicted(seen);
    const int doubts = (point.unroll != 0) + (point.pieces != 0) + (point.ahead != seen.ahead);
    if (time) time->pack += kDoubt * doubts * time->total();
    return time;
  }

 private:
  bool can_block(const TilePoint& tile) const {
    return cost::blocked_axis(contraction_, tile) >= 0;
  }

  const std::optional<cost::Prediction>& predicted(const TilePoint& point) const {
    const auto key = std::tuple{point.rows,         point.columns, point.plane,
                                point.rows_outside, point.block,   point.ahead};
    const auto [at, added] = known_.try_emplace(key);
    if (added && cost::reject(contraction_, point, task_.cpu()).empty())
      at->second = cost::predict(contraction_, point, task_.cpu(), task_.threads);
    return at->second;
  }

  TilePoint at(const search::Point& values) const {
    size_t next = 0;
    auto take = [&] { return static_cast<size_t>(values[next++]); };
    TilePoint point = tiles_[take()];
    cost::LoopOrder order = orders_[take()];
    if (!whole_orders_.empty()) {
      const cost::LoopOrder whole = whole_orders_[take()];
      if (!can_block(point)) order = whole;
    }
    point.rows_outside = order.rows_outside;
    point.block = order.block;
    point.ahead = aheads_[take()];
    point.unroll = unrolls_[take()];
    point.pieces = pieces_[take()];
    return point;
  }

  const measure::Task task_;
  const cost::Contraction contraction_;
  const bool dots_;
  const std::vector<TilePoint> tiles_;
  const std::vector<cost::LoopOrder> orders_;
  std::vector<cost::LoopOrder> whole_orders_;  ///< of tiles that hold whole rows
  std::vector<int64_t> aheads_, unrolls_, pieces_;
  mutable std::map<std::tuple<int64_t, int64_t, int64_t, bool, int64_t, int64_t>,
                   std::optional<cost::Prediction>>
      known_;
};

}  // namespace

std::unique_ptr<RuleSpace> tile_rule_space(const measure::Task& task) {
  if (rules::winograd_trace(task.func, task.cpu(), task.threads)) return nullptr;
  const std::optional<Func> groups = rules::dot_groups(task.func, task.cpu());
  const Func& func = groups ? *groups : task.func;
  const std::optional<cost::Contraction> contraction =
      rules::main_contraction(func, task.cpu(), task.threads);
  // Rules for several contractions at once leave nothing to say about one of them.
  if (!contraction ||
      rules::choose_schedule(func, task.cpu(), task.threads).decision.candidates == 0)
    return nullptr;
  return std::make_unique<TileRuleSpace>(task, *contraction, groups.has_value());
}

}  // namespace tilewright::tune
