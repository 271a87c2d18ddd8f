#include "tilewright/search/multi/hypervolume.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tilewright/base/check.h"

namespace tilewright::search {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The area that points dominate below a reference in two objectives, point by point.
class Staircase {
 public:
  Staircase(double reference_x, double reference_y) {
    steps_[-kInfinite] = reference_y;
    steps_[reference_x] = -kInfinite;
  }
  double area() const { return area_; }

  /// requires: below the reference in both.
  void add(double x, double y) {
    auto step = std::prev(steps_.upper_bound(x));
    if (step->second <= y) return;
    double from = x, height = step->second;
    const bool replaced = step->first == x;
    for (++step; step->second >= y; step = steps_.erase(step)) {
      area_ += (step->first - from) * (height - y);
      from = step->first, height = step->second;
    }
    area_ += (step->first - from) * (height - y);
    if (replaced)
      steps_[x] = y;
    else
      steps_.emplace_hint(step, x, y);
  }

 private:
  std::map<double, double> steps_;  ///< x -> lowest y at x and above, up to the next x
  double area_ = 0;
};

/// Of the first `objectives` of the points, which are all below the reference: by slices from the
/// last objective of one point to the next one's.
double volume(std::vector<const Objectives*> points, size_t objectives,
              const Objectives& reference) {
  const size_t last = objectives - 1;
  if (points.empty()) return 0;
  std::sort(points.begin(), points.end(),
            [&](const Objectives* a, const Objectives* b) { return (*a)[last] < (*b)[last]; });
  if (objectives == 1) return reference[0] - (*points[0])[0];
  double total = 0;
  Staircase stairs(reference[0], reference[1]);
  std::vector<const Objectives*> slice;
  for (size_t i = 0; i < points.size(); ++i) {
    const Objectives& point = *points[i];
    if (objectives <= 3)
      stairs.add(point[0], point[1]);
    else
      slice.push_back(&point);
    if (objectives == 2) continue;
    const double end = i + 1 < points.size() ? (*points[i + 1])[last] : reference[last];
    if (end <= point[last]) continue;
    total +=
        (end - point[last]) * (objectives == 3 ? stairs.area() : volume(slice, last, reference));
  }
  return objectives == 2 ? stairs.area() : total;
}

}  // namespace

double hypervolume(const std::vector<Objectives>& points, const Objectives& reference) {
  TW_CHECK(!reference.empty(), "a hypervolume of no objectives");
  std::vector<const Objectives*> below;
  for (const Objectives& point : points) {
    TW_CHECK(point.size() == reference.size(), "{} objectives, reference {}", point.size(),
             reference.size());
    bool inside = true;
    for (size_t j = 0; j < point.size(); ++j) inside &= point[j] < reference[j];
    if (inside) below.push_back(&point);
  }
  return volume(std::move(below), reference.size(), reference);
}

ObjectiveScale ObjectiveScale::of(const std::vector<Objectives>& points) {
  TW_CHECK(!points.empty(), "a scale of no points");
  ObjectiveScale scale;
  scale.low.assign(points[0].size(), kInfinite);
  scale.high.assign(points[0].size(), -kInfinite);
  for (const Objectives& point : points)
    for (size_t j = 0; j < point.size(); ++j) {
      TW_CHECK(point[j] > 0 && std::isfinite(point[j]), "objective {} is {}", j, point[j]);
      scale.low[j] = std::min(scale.low[j], std::log10(point[j]));
      scale.high[j] = std::max(scale.high[j], std::log10(point[j]));
    }
  return scale;
}

Objectives ObjectiveScale::operator()(const Objectives& point) const {
  Objectives scaled(point.size());
  for (size_t j = 0; j < point.size(); ++j)
    scaled[j] = unit(j) == 0 ? 0 : (std::log10(point[j]) - low[j]) * unit(j);
  return scaled;
}

FrontScore::FrontScore(const std::vector<Objectives>& points)
    : scale_(ObjectiveScale::of(points)), front_(pareto_front(points)) {
  for (size_t i : front_) scaled_front_.push_back(scale_(points[i]));
  reference_.assign(points[0].size(), kReference);
  whole_ = hypervolume(scaled_front_, reference_);
}

double FrontScore::share(const std::vector<Objectives>& chosen) const {
  std::vector<Objectives> scaled;
  for (const Objectives& point : chosen) scaled.push_back(scale_(point));
  return hypervolume(scaled, reference_) / whole_;
}

std::vector<double> FrontScore::ceiling(size_t count) const {
  // What a point adds only falls as others are added, so the gains of earlier rounds are bounds:
  // most points need not be looked at again.
  std::vector<Objectives> chosen;
  std::vector<double> shares, gains(scaled_front_.size(), kInfinite);
  std::vector<size_t> order(scaled_front_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  double covered = 0;
  while (chosen.size() < count && chosen.size() < scaled_front_.size()) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return gains[a] > gains[b]; });
    size_t best = order[0];
    double best_gain = -kInfinite;
    for (size_t i : order) {
      if (gains[i] < best_gain) break;
      chosen.push_back(scaled_front_[i]);
      gains[i] = hypervolume(chosen, reference_) - covered;
      chosen.pop_back();
      if (gains[i] > best_gain) best_gain = gains[i], best = i;
    }
    chosen.push_back(scaled_front_[best]);
    covered += best_gain;
    gains[best] = -kInfinite;
    shares.push_back(covered / whole_);
  }
  return shares;
}

}  // namespace tilewright::search
