#include "tilewright/driver/codesign/front.h"

#include <algorithm>
#include <map>

#include "tilewright/driver/codesign/levels.h"
#include "tilewright/search/multi/hypervolume.h"

namespace tilewright::driver {

std::vector<FrontPoint> front_of(const std::vector<codesign::StudyRow>& rows) {
  std::vector<FrontPoint> designs;
  std::map<search::Point, size_t> index;
  std::vector<bool> feasible;
  for (const codesign::StudyRow& row : rows) {
    const auto [found, is_new] = index.emplace(row.trial.point, designs.size());
    if (is_new) {
      designs.push_back({designs.size() + 1, {}, row.design, {}, row.trial.point});
      feasible.push_back(false);
    }
    FrontPoint& design = designs[found->second];
    design.objectives = row.trial.outcome.objectives;
    design.level = row.level;
    feasible[found->second] = search::feasible(row.trial.outcome);
  }
  std::vector<FrontPoint> kept;
  std::vector<search::Objectives> objectives;
  for (size_t i = 0; i < designs.size(); ++i) {
    if (!feasible[i]) continue;
    objectives.push_back(designs[i].objectives);
    kept.push_back(std::move(designs[i]));
  }
  std::vector<FrontPoint> front;
  for (const size_t i : search::pareto_front(objectives)) front.push_back(std::move(kept[i]));
  std::sort(front.begin(), front.end(), [](const FrontPoint& a, const FrontPoint& b) {
    return std::pair(a.objectives[0], a.number) < std::pair(b.objectives[0], b.number);
  });
  return front;
}

std::string highest_level(const std::vector<codesign::StudyRow>& rows) {
  std::string level = codesign::kModelLevel;
  for (const codesign::StudyRow& row : rows)
    if (rank_of(row.level) > rank_of(level)) level = row.level;
  return level;
}

std::vector<FrontPoint> front_at(const std::vector<codesign::StudyRow>& rows,
                                 const std::string& level) {
  std::map<search::Point, size_t> numbers;
  std::vector<codesign::StudyRow> judged;
  for (const codesign::StudyRow& row : rows) {
    numbers.emplace(row.trial.point, numbers.size() + 1);
    if (row.level == level) judged.push_back(row);
  }
  // What broke a limit elsewhere breaks it here.
  if (level == codesign::kModelLevel) judged = model_rows(rows);
  std::vector<FrontPoint> front = front_of(judged);
  for (FrontPoint& point : front) point.number = numbers.at(point.point);
  return front;
}

std::vector<double> knee_distances(const std::vector<FrontPoint>& front) {
  std::vector<search::Objectives> points;
  for (const FrontPoint& point : front) points.push_back(point.objectives);
  std::vector<double> squares;
  if (points.empty()) return squares;
  const search::ObjectiveScale scale = search::ObjectiveScale::of(points);
  for (const search::Objectives& point : points) {
    double square = 0;
    for (const double z : scale(point)) square += z * z;
    squares.push_back(square);
  }
  return squares;
}

size_t knee_of(const std::vector<FrontPoint>& front) {
  const std::vector<double> distances = knee_distances(front);
  return static_cast<size_t>(std::min_element(distances.begin(), distances.end()) -
                             distances.begin());
}

}  // namespace tilewright::driver
