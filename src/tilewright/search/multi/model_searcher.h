// What mobo and ours have in common: beliefs of all points not yet evaluated, and the point whose
// evaluation promises to add most to the front.
#pragma once

#include "tilewright/search/multi/draws.h"
#include "tilewright/search/multi/hypervolume.h"
#include "tilewright/search/multi/improvement.h"
#include "tilewright/search/multi/surrogate.h"

namespace tilewright::search {

class ModelSearcher : public MultiSearcher {
 public:
  struct How {
    SurrogateOptions surrogate;
    Acquisition acquisition = Acquisition::Hvpi;
    size_t initial = 0;
    /// Points that are at least as likely to meet the limits go before all others.
    double careful = 0;
  };
  ModelSearcher(MultiProblem problem, const MultiOptions& options, const How& how);

  std::vector<Point> propose(int count) override;

 protected:
  /// The scale on which volumes are measured while the search runs, of what is known and believed;
  /// absent if nothing is known that meets the limits: then any point that does is looked for.
  virtual std::optional<ObjectiveScale> scale(const Beliefs& beliefs) const = 0;

 private:
  /// How good a point is to evaluate: the first number that differs decides.
  struct Promise {
    bool careful = false;
    double value = -1, probability = -1, feasible = -1;
    bool operator<(const Promise& other) const;
  };
  struct Pool {
    std::vector<Point> points;  ///< empty: those of the draws
    PointViews views;
  };

  const std::vector<Point>& points_of(const Pool& pool) const;
  void look_again();
  Pool drawn_pool();
  std::vector<Objectives> scaled_front(const ObjectiveScale& scale) const;
  Promise promise(const Improvement& improvement, const ObjectiveScale& scale,
                  const Beliefs& beliefs, Eigen::Index row, bool all_dominated) const;
  /// The most promising row of the pool; absent if all are taken.
  std::optional<size_t> best_row(const Improvement& improvement, const ObjectiveScale& scale,
                                 const Beliefs& beliefs, const std::vector<bool>& taken) const;

  MultiOptions options_;
  How how_;
  Draws draws_;
  Surrogate surrogate_;
  Pool listed_;              ///< all legal points, where they are listed
  std::vector<bool> taken_;  ///< of these: evaluated
  size_t seen_ = 0;          ///< trials that taken_ knows
};

}  // namespace tilewright::search
