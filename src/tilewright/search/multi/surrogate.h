// What models believe of points that are not evaluated: a Gaussian process per objective and limit.
#pragma once

#include <Eigen/Dense>
#include <map>

#include "tilewright/search/multi/gaussian_process.h"
#include "tilewright/search/multi/multi_objective.h"

namespace tilewright::search {

/// Points as models see them, one row each.
struct PointViews {
  Eigen::MatrixXd inputs;
  /// What the prior says: points x objectives (log10) and points x limits; 0 without a prior.
  Eigen::MatrixXd objectives, violations;
};

struct Beliefs {
  Eigen::MatrixXd mean, deviation;  ///< of log10 of the objectives: points x objectives
  Eigen::VectorXd feasible;         ///< probability of a result that meets all limits
};

struct SurrogateOptions {
  /// The prior is the mean; else the mean of the trials is.
  bool use_prior = false;
  GpPriors densities;
  uint64_t seed = 0;
};

class Surrogate {
 public:
  /// `problem` must outlive it.
  Surrogate(const MultiProblem& problem, const SurrogateOptions& options);

  PointViews view(const std::vector<Point>& points) const;
  /// Beliefs of `points` after `trials`. Depends on nothing but these: what it keeps from call to
  /// call only saves fitting the same parameters again.
  Beliefs believe(const std::vector<MultiTrial>& trials, const PointViews& points);

 private:
  struct Normal {
    Eigen::VectorXd mean, deviation;
  };
  struct Fitted {
    Eigen::Index count = 0;  ///< of outputs they were fitted to
    GpParameters parameters;
  };
  Normal predict(size_t key, const Eigen::MatrixXd& inputs, const Eigen::VectorXd& outputs,
                 const Eigen::MatrixXd& at, bool from_prior);
  const GpParameters& parameters(size_t key, const Eigen::MatrixXd& inputs,
                                 const Eigen::VectorXd& outputs, bool from_prior);
  double spread(bool from_prior) const;
  void believe_objectives(const std::vector<size_t>& rows, const std::vector<MultiTrial>& trials,
                          const PointViews& seen, const PointViews& points, Beliefs& beliefs);
  void believe_limits(const std::vector<size_t>& rows, const std::vector<MultiTrial>& trials,
                      const PointViews& seen, const PointViews& points, Beliefs& beliefs);
  void believe_results(const std::vector<MultiTrial>& trials, const PointViews& seen,
                       const PointViews& points, Beliefs& beliefs);

  const MultiProblem& problem_;
  SurrogateOptions options_;
  std::vector<size_t> columns_;    ///< of the space's features: those that vary
  Eigen::VectorXd least_, range_;  ///< of these columns
  std::map<size_t, Fitted> fitted_;
};

}  // namespace tilewright::search
