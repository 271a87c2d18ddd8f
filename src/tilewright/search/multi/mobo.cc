#include "tilewright/search/multi/methods.h"
#include "tilewright/search/multi/model_searcher.h"

namespace tilewright::search {
namespace {

class Mobo final : public ModelSearcher {
 public:
  using ModelSearcher::ModelSearcher;

 protected:
  /// From the best to the worst that was seen to meet the limits.
  std::optional<ObjectiveScale> scale(const Beliefs&) const override {
    std::vector<Objectives> seen;
    for (const MultiTrial& trial : trials())
      if (feasible(trial.outcome)) seen.push_back(trial.outcome.objectives);
    if (seen.empty()) return std::nullopt;
    return ObjectiveScale::of(seen);
  }
};

}  // namespace

std::unique_ptr<MultiSearcher> mobo(MultiProblem problem, const MultiOptions& options) {
  ModelSearcher::How how;
  how.surrogate.seed = options.seed;
  how.surrogate.densities.length_rate =
      options.length_rate.value_or(how.surrogate.densities.length_rate);
  how.acquisition = options.acquisition.value_or(Acquisition::Hvpi);
  // A model of one point knows nothing of distances.
  how.initial = static_cast<size_t>(std::max(2, options.initial));
  return std::make_unique<Mobo>(std::move(problem), options, how);
}

}  // namespace tilewright::search
