#include "tilewright/search/multi/draws.h"

#include <algorithm>
#include <utility>

namespace tilewright::search {
namespace {

bool legal(const MultiProblem& problem, const Point& point) {
  return !problem.legal || problem.legal(point);
}

}  // namespace

uint64_t mixed_seed(uint64_t seed, uint64_t a, uint64_t b) {
  const uint64_t first = Rng(seed).next() + a;
  const uint64_t second = Rng(first).next() + b;
  return Rng(second).next();
}

std::vector<Point> legal_points(const MultiProblem& problem) {
  std::vector<Point> points;
  const auto size = static_cast<int64_t>(problem.space.size());
  for (int64_t i = 0; i < size; ++i) {
    Point point = problem.space.at(i);
    if (legal(problem, point)) points.push_back(std::move(point));
  }
  return points;
}

std::vector<Point> points_that_share(const MultiProblem& problem) {
  std::vector<Point> points = legal_points(problem);
  if (problem.sharing.empty()) return points;
  std::vector<std::pair<Point, Point>> turns;  // when a point's turn is, the point
  for (Point& point : points) {
    Point turn = point;
    for (const size_t decision : problem.sharing) turn[decision] = 0;
    for (const size_t decision : problem.sharing) turn.push_back(-point[decision]);
    turns.emplace_back(std::move(turn), std::move(point));
  }
  std::sort(turns.begin(), turns.end());
  for (size_t i = 0; i < points.size(); ++i) points[i] = std::move(turns[i].second);
  return points;
}

Draws::Draws(const MultiProblem& problem, const MultiOptions& options)
    : problem_(problem),
      rng_(mixed_seed(options.seed, 1)),
      listed_(problem.space.size() <= options.list_up_to) {
  if (!listed_) return;
  points_ = legal_points(problem);
  for (size_t left = points_.size(); left > 1; --left)
    std::swap(points_[left - 1],
              points_[static_cast<size_t>(rng_.below(static_cast<int64_t>(left)))]);
}

bool Draws::draw_more() {
  constexpr int kAttempts = 100000;  // beyond, legal points are too rare to be found like this
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Point point = problem_.space.random(rng_);
    if (!legal(problem_, point) || !seen_.insert(point).second) continue;
    points_.push_back(std::move(point));
    return true;
  }
  return false;
}

std::optional<Point> Draws::next(const MultiSearcher& searcher, const std::vector<Point>& batch) {
  while (first_ < points_.size() && searcher.tried(points_[first_])) ++first_;
  for (size_t i = first_; i < points_.size() || (!listed_ && draw_more()); ++i)
    if (!searcher.tried(points_[i]) &&
        std::find(batch.begin(), batch.end(), points_[i]) == batch.end())
      return points_[i];
  return std::nullopt;
}

void Draws::fill(const MultiSearcher& searcher, std::vector<Point>& batch, size_t count) {
  while (batch.size() < count) {
    std::optional<Point> point = next(searcher, batch);
    if (!point) return;
    batch.push_back(*std::move(point));
  }
}

}  // namespace tilewright::search
