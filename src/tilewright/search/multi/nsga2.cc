#include <algorithm>
#include <cmath>

#include "tilewright/base/check.h"
#include "tilewright/search/multi/draws.h"
#include "tilewright/search/multi/methods.h"

namespace tilewright::search {
namespace {

constexpr double kCrossover = 0.9;
/// Distribution index of SBX: children lie near their parents, the more so the larger it is.
constexpr double kSpreadIndex = 15;

/// The values lie in a row: one direction goes up by one, the other down.
bool in_a_row(const Decision& decision) {
  if (decision.moves.size() != 2) return false;
  const int last = static_cast<int>(decision.values.size()) - 1;
  for (int v = 0; v <= last; ++v) {
    const auto at = static_cast<size_t>(v);
    if (decision.moves[0][at] != std::min(v + 1, last)) return false;
    if (decision.moves[1][at] != std::max(v - 1, 0)) return false;
  }
  return true;
}

/// Rounds to one of the two whole numbers beside `value`, the nearer one more often.
int round_by_chance(double value, Rng& rng) {
  const double floor = std::floor(value);
  return static_cast<int>(floor) + (rng.chance(value - floor) ? 1 : 0);
}

/// One decision of a child: for values in a row near one of the parents, as SBX draws real numbers;
/// else one of the parents' values.
int crossed(const Decision& decision, int a, int b, Rng& rng) {
  if (a == b) return a;
  if (rng.chance(0.5)) std::swap(a, b);
  if (!in_a_row(decision)) return a;
  const double u = rng.uniform();
  const double exponent = 1 / (kSpreadIndex + 1);
  const double spread = u < 0.5 ? std::pow(2 * u, exponent) : std::pow(1 / (2 * (1 - u)), exponent);
  const double child = 0.5 * ((1 + spread) * a + (1 - spread) * b);
  const int last = static_cast<int>(decision.values.size()) - 1;
  return std::clamp(round_by_chance(child, rng), 0, last);
}

/// Another value of a decision: of values in a row a neighbour half of the time.
int mutated(const Decision& decision, int value, Rng& rng) {
  const auto count = static_cast<int64_t>(decision.values.size());
  if (count == 1) return value;
  if (in_a_row(decision) && rng.chance(0.5)) {
    const size_t direction = rng.chance(0.5) ? 0 : 1;
    const int next = decision.moves[direction][static_cast<size_t>(value)];
    // At an end there is one neighbour only.
    return next != value ? next : decision.moves[1 - direction][static_cast<size_t>(value)];
  }
  return static_cast<int>((value + 1 + rng.below(count - 1)) % count);
}

struct Ranked {
  size_t trial = 0, rank = 0;
  double crowding = 0;
};

bool better(const Ranked& a, const Ranked& b) {
  return a.rank != b.rank ? a.rank < b.rank : a.crowding > b.crowding;
}

class Nsga2 final : public MultiSearcher {
 public:
  Nsga2(MultiProblem of, const MultiOptions& options)
      : MultiSearcher(std::move(of)),
        seed_(options.seed),
        population_(static_cast<size_t>(options.population)),
        initial_(static_cast<size_t>(std::max(options.initial, options.population))),
        draws_(problem(), options) {
    TW_CHECK(options.population > 1, "a population of {}", options.population);
  }

  std::vector<Point> propose(int count) override {
    std::vector<Point> batch;
    const size_t wanted = static_cast<size_t>(count), told = trials().size();
    if (told < initial_) draws_.fill(*this, batch, std::min(wanted, initial_ - told));
    if (!batch.empty() || told < initial_) return batch;
    const std::vector<Ranked>& parents = this->parents();
    while (batch.size() < wanted) {
      Rng rng(mixed_seed(seed_, 2, told + batch.size()));
      std::optional<Point> child = new_child(parents, batch, rng);
      if (!child) break;
      batch.push_back(*std::move(child));
    }
    return batch;
  }

 private:
  /// The best `population_` of the trials in `among`, with rank and crowding.
  std::vector<Ranked> survivors(const std::vector<size_t>& among) const {
    std::vector<MultiOutcome> outcomes;
    for (size_t trial : among) outcomes.push_back(trials()[trial].outcome);
    std::vector<Ranked> all;
    size_t number = 0;
    for (const std::vector<size_t>& rank : non_dominated_sort(outcomes)) {
      const std::vector<double> crowding = crowding_distances(outcomes, rank);
      for (size_t i = 0; i < rank.size(); ++i) all.push_back({among[rank[i]], number, crowding[i]});
      ++number;
    }
    std::stable_sort(all.begin(), all.end(), better);
    all.resize(std::min(all.size(), population_));
    return all;
  }

  /// The survivors of all generations so far. What is kept saves going through them again.
  const std::vector<Ranked>& parents() {
    std::vector<size_t> among;
    while (generations_end_ == 0 || generations_end_ + population_ <= trials().size()) {
      const size_t next = generations_end_ == 0 ? initial_ : generations_end_ + population_;
      among.clear();
      for (const Ranked& parent : parents_) among.push_back(parent.trial);
      for (size_t i = generations_end_; i < next; ++i) among.push_back(i);
      parents_ = survivors(among);
      generations_end_ = next;
    }
    return parents_;
  }

  const Point& winner(const std::vector<Ranked>& parents, Rng& rng) const {
    const auto count = static_cast<int64_t>(parents.size());
    const auto first = static_cast<size_t>(rng.below(count));
    const auto second = static_cast<size_t>(rng.below(count));
    const size_t best = better(parents[second], parents[first]) ? second : first;
    return trials()[parents[best].trial].point;
  }

  Point child(const std::vector<Ranked>& parents, Rng& rng) const {
    const std::vector<Decision>& decisions = problem().space.decisions();
    Point child = winner(parents, rng);
    const Point& other = winner(parents, rng);
    if (rng.chance(kCrossover))
      for (size_t d = 0; d < child.size(); ++d)
        if (rng.chance(0.5)) child[d] = crossed(decisions[d], child[d], other[d], rng);
    for (size_t d = 0; d < child.size(); ++d)
      if (rng.chance(1 / static_cast<double>(child.size())))
        child[d] = mutated(decisions[d], child[d], rng);
    return problem().space.canonical(std::move(child));
  }

  std::optional<Point> new_child(const std::vector<Ranked>& parents,
                                 const std::vector<Point>& batch, Rng& rng) {
    constexpr int kAttempts = 200;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Point point = child(parents, rng);
      if (!tried(point) && (!problem().legal || problem().legal(point)) &&
          std::find(batch.begin(), batch.end(), point) == batch.end())
        return point;
    }
    return draws_.next(*this, batch);
  }

  uint64_t seed_;
  size_t population_, initial_;
  Draws draws_;
  std::vector<Ranked> parents_;
  size_t generations_end_ = 0;  ///< trials that parents_ are of
};

}  // namespace

std::unique_ptr<MultiSearcher> nsga2(MultiProblem problem, const MultiOptions& options) {
  return std::make_unique<Nsga2>(std::move(problem), options);
}

}  // namespace tilewright::search
