#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/base/check.h"
#include "tilewright/search/multi/methods.h"
#include "tilewright/search/multi/model_searcher.h"

namespace tilewright::search {
namespace {

class MultiPrior final : public ModelSearcher {
 public:
  using ModelSearcher::ModelSearcher;

 protected:
  /// From the best to the worst that is believed of points likely to meet the limits, evaluated or
  /// not: close to the scale of all of them from the start.
  std::optional<ObjectiveScale> scale(const Beliefs& beliefs) const override {
    constexpr double kLikely = 0.5;
    const size_t objectives = problem().objectives;
    const double infinite = std::numeric_limits<double>::infinity();
    ObjectiveScale scale{std::vector<double>(objectives, infinite),
                         std::vector<double>(objectives, -infinite)};
    auto widen = [&](size_t j, double log) {
      scale.low[j] = std::min(scale.low[j], log);
      scale.high[j] = std::max(scale.high[j], log);
    };
    bool any = false;
    for (Eigen::Index i = 0; i < beliefs.feasible.size(); ++i) {
      if (beliefs.feasible[i] < kLikely) continue;
      any = true;
      for (size_t j = 0; j < objectives; ++j)
        widen(j, beliefs.mean(i, static_cast<Eigen::Index>(j)));
    }
    for (const MultiTrial& trial : trials()) {
      if (!feasible(trial.outcome)) continue;
      any = true;
      for (size_t j = 0; j < objectives; ++j) widen(j, std::log10(trial.outcome.objectives[j]));
    }
    return any ? std::optional(scale) : std::nullopt;
  }
};

}  // namespace

std::unique_ptr<MultiSearcher> multi_prior(MultiProblem problem, const MultiOptions& options) {
  TW_CHECK(problem.prior.at != nullptr, "a search by a prior without one");
  ModelSearcher::How how;
  how.surrogate.use_prior = true;
  how.surrogate.seed = options.seed;
  // What a prior leaves out is smoother than what it says.
  how.surrogate.densities.length_rate = options.length_rate.value_or(2);
  how.acquisition = options.acquisition.value_or(Acquisition::Ehvi);
  // Most of an evaluation that breaks a limit is wasted.
  how.careful = 0.9;
  return std::make_unique<MultiPrior>(std::move(problem), options, how);
}

}  // namespace tilewright::search
