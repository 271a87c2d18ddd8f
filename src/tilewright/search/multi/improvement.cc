#include "tilewright/search/multi/improvement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tilewright/base/check.h"

namespace tilewright::search {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
/// Deviations below this count as none: the value is known.
constexpr double kKnown = 1e-12;

double normal_density(double t) { return std::exp(-0.5 * t * t) * 0.3989422804014327; }
double normal_below(double t) { return 0.5 * std::erfc(-t * 0.7071067811865476); }

/// Boxes in the first `objectives`: slices in the last of these, and the boxes of each slice. A box
/// that goes on through the next slice is one.
std::vector<ObjectiveBox> boxes_of(std::vector<const Objectives*> points, size_t objectives,
                                   const Objectives& reference) {
  const size_t last = objectives - 1;
  const double end = reference[last];
  std::sort(points.begin(), points.end(),
            [&](const Objectives* a, const Objectives* b) { return (*a)[last] < (*b)[last]; });
  if (objectives == 1)
    return {{{-kUnbounded}, {points.empty() ? end : std::min(end, (*points[0])[0])}}};
  std::vector<ObjectiveBox> boxes;
  using Sides = std::pair<Objectives, Objectives>;
  std::map<Sides, double> open;  // boxes of the slice -> where they began
  auto close = [&](const Sides& sides, double from, double to) {
    ObjectiveBox box{sides.first, sides.second};
    box.low.push_back(from), box.high.push_back(to);
    boxes.push_back(std::move(box));
  };
  std::vector<const Objectives*> below;
  double from = -kUnbounded;
  for (size_t i = 0; from < end;) {
    std::map<Sides, double> next;
    for (ObjectiveBox& box : boxes_of(below, last, reference)) {
      Sides sides{std::move(box.low), std::move(box.high)};
      const auto before = open.find(sides);
      const double start = before == open.end() ? from : before->second;
      if (before != open.end()) open.erase(before);
      next.emplace(std::move(sides), start);
    }
    for (const auto& [sides, start] : open) close(sides, start, from);
    open = std::move(next);
    from = i < points.size() ? std::min(end, (*points[i])[last]) : end;
    for (; i < points.size() && (*points[i])[last] <= from; ++i) below.push_back(points[i]);
  }
  for (const auto& [sides, start] : open) close(sides, start, end);
  return boxes;
}

size_t edge_index(const std::vector<double>& edges, double edge) {
  return static_cast<size_t>(std::lower_bound(edges.begin(), edges.end(), edge) - edges.begin());
}

}  // namespace

std::vector<ObjectiveBox> non_dominated_boxes(const std::vector<Objectives>& front,
                                              const Objectives& reference) {
  std::vector<const Objectives*> points;
  for (const Objectives& point : front) {
    TW_CHECK(point.size() == reference.size(), "{} objectives, reference {}", point.size(),
             reference.size());
    bool inside = true;
    for (size_t j = 0; j < point.size(); ++j) inside &= point[j] < reference[j];
    if (inside) points.push_back(&point);
  }
  return boxes_of(std::move(points), reference.size(), reference);
}

Improvement::Improvement(const std::vector<Objectives>& front, const Objectives& reference)
    : objectives_(reference.size()), edges_(reference.size()) {
  const std::vector<ObjectiveBox> boxes = non_dominated_boxes(front, reference);
  for (size_t j = 0; j < objectives_; ++j) {
    for (const ObjectiveBox& box : boxes)
      edges_[j].insert(edges_[j].end(), {box.low[j], box.high[j]});
    std::sort(edges_[j].begin(), edges_[j].end());
    edges_[j].erase(std::unique(edges_[j].begin(), edges_[j].end()), edges_[j].end());
  }
  for (const ObjectiveBox& box : boxes)
    for (size_t j = 0; j < objectives_; ++j) {
      low_.push_back(edge_index(edges_[j], box.low[j]));
      high_.push_back(edge_index(edges_[j], box.high[j]));
    }
}

bool Improvement::hopeless(const double* corner) const {
  for (size_t at = 0; at < high_.size(); at += objectives_) {
    bool room = true;
    for (size_t j = 0; j < objectives_ && room; ++j) room = corner[j] < edges_[j][high_[at + j]];
    if (room) return false;
  }
  return true;
}

template <class Value>
double Improvement::sum(const Value& value) const {
  std::vector<std::vector<double>> values(objectives_);
  for (size_t j = 0; j < objectives_; ++j)
    for (double edge : edges_[j]) values[j].push_back(edge == -kUnbounded ? 0 : value(j, edge));
  double total = 0;
  for (size_t at = 0; at < high_.size(); at += objectives_) {
    double product = 1;
    for (size_t j = 0; j < objectives_; ++j)
      product *= values[j][high_[at + j]] - values[j][low_[at + j]];
    total += product;
  }
  return total;
}

double Improvement::added(const double* point) const {
  return sum([&](size_t j, double edge) { return std::max(0.0, edge - point[j]); });
}

double Improvement::probability(const double* mean, const double* deviation) const {
  return sum([&](size_t j, double edge) {
    if (deviation[j] < kKnown) return mean[j] < edge ? 1.0 : 0.0;
    return normal_below((edge - mean[j]) / deviation[j]);
  });
}

double Improvement::expected(const double* mean, const double* deviation) const {
  return sum([&](size_t j, double edge) {
    const double room = edge - mean[j];
    if (deviation[j] < kKnown) return std::max(0.0, room);
    const double t = room / deviation[j];
    return room * normal_below(t) + deviation[j] * normal_density(t);
  });
}

}  // namespace tilewright::search
