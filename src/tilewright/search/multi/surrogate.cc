#include "tilewright/search/multi/surrogate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/base/check.h"
#include "tilewright/search/multi/draws.h"

namespace tilewright::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Parameters are fitted again with every trial up to this many, then less and less often.
constexpr Index kFitAlways = 64;

/// The number of outputs to fit parameters to where there are `count`.
Index fit_count(Index count) {
  Index step = 1;
  while (step * kFitAlways < count) step *= 2;
  return count - count % step;
}

MatrixXd rows_of(const MatrixXd& matrix, const std::vector<size_t>& rows) {
  MatrixXd part(static_cast<Index>(rows.size()), matrix.cols());
  if (matrix.cols() == 0) return part;  // no limits: there are no rows to point into
  for (size_t i = 0; i < rows.size(); ++i)
    part.row(static_cast<Index>(i)) = matrix.row(static_cast<Index>(rows[i]));
  return part;
}

/// Mean and deviation that make outputs standard. A prior's `spread`, where above 0, counts as two
/// made-up outputs of that deviation and one of mean 0.
struct Standard {
  double centre = 0, scale = 0;

  Standard(const VectorXd& outputs, double spread) {
    const auto count = static_cast<double>(outputs.size());
    const bool prior = spread > 0;
    if (count > 0) centre = outputs.sum() / (prior ? count + 1 : count);
    const double squares = (outputs.array() - centre).square().sum();
    if (prior)
      scale = std::sqrt((squares + 2 * spread * spread) / (count + 2));
    else if (count > 0)
      scale = std::sqrt(squares / count);
  }
};

double below_probability(double limit, double mean, double deviation) {
  if (deviation < 1e-12) return mean <= limit ? 1 : 0;
  return 0.5 * std::erfc((mean - limit) / (deviation * std::sqrt(2.0)));
}

/// Up to where a predicted violation counts as met. Where trials that meet the limit only say 0,
/// models cannot tell how well they meet it: half way to the smallest violation.
double met_up_to(const VectorXd& violations) {
  double smallest = std::numeric_limits<double>::infinity();
  for (double violation : violations) {
    if (violation < 0) return 0;
    if (violation > 0) smallest = std::min(smallest, violation);
  }
  return std::isfinite(smallest) && violations.minCoeff() <= 0 ? smallest / 2 : 0;
}

}  // namespace

Surrogate::Surrogate(const MultiProblem& problem, const SurrogateOptions& options)
    : problem_(problem), options_(options) {
  if (problem.features) return;
  std::vector<double> least, range;
  size_t column = 0;
  for (const Decision& decision : problem.space.decisions())
    for (size_t k = 0; k < decision.values[0].features.size(); ++k, ++column) {
      // Decisions that are not asked have zeros.
      double low = decision.parent < 0 ? decision.values[0].features[k] : 0, high = low;
      for (const DecisionValue& value : decision.values) {
        low = std::min(low, value.features[k]);
        high = std::max(high, value.features[k]);
      }
      if (high <= low) continue;
      columns_.push_back(column);
      least.push_back(low);
      range.push_back(high - low);
    }
  least_ = Eigen::Map<VectorXd>(least.data(), static_cast<Index>(least.size()));
  range_ = Eigen::Map<VectorXd>(range.data(), static_cast<Index>(range.size()));
}

PointViews Surrogate::view(const std::vector<Point>& points) const {
  const auto count = static_cast<Index>(points.size());
  const auto objectives = static_cast<Index>(problem_.objectives);
  const auto limits = static_cast<Index>(problem_.limits);
  const Index own = !problem_.features ? least_.size()
                    : points.empty()   ? 0
                                       : static_cast<Index>(problem_.features(points[0]).size());
  PointViews views{MatrixXd(count, own), MatrixXd::Zero(count, objectives),
                   MatrixXd::Zero(count, limits)};
  for (Index i = 0; i < count; ++i) {
    const Point& point = points[static_cast<size_t>(i)];
    const std::vector<double> features =
        problem_.features ? problem_.features(point) : problem_.space.features(point);
    for (Index j = 0; j < own; ++j)
      views.inputs(i, j) =
          problem_.features ? features[static_cast<size_t>(j)]
                            : (features[columns_[static_cast<size_t>(j)]] - least_[j]) / range_[j];
    if (!options_.use_prior) continue;
    const PriorValue value = problem_.prior.at(point);
    TW_CHECK(value.log_objectives.size() == problem_.objectives &&
                 value.violations.size() == problem_.limits,
             "a prior of {} objectives and {} limits", value.log_objectives.size(),
             value.violations.size());
    for (Index j = 0; j < objectives; ++j)
      views.objectives(i, j) = value.log_objectives[static_cast<size_t>(j)];
    for (Index j = 0; j < limits; ++j)
      views.violations(i, j) = value.violations[static_cast<size_t>(j)];
  }
  return views;
}

double Surrogate::spread(bool from_prior) const {
  return from_prior && options_.use_prior ? problem_.prior.spread : 0;
}

const GpParameters& Surrogate::parameters(size_t key, const MatrixXd& inputs,
                                          const VectorXd& outputs, bool from_prior) {
  const Index count = fit_count(outputs.size());
  Fitted& fitted = fitted_[key];
  if (fitted.count == count) return fitted.parameters;
  const VectorXd first = outputs.head(count);
  const Standard standard(first, spread(from_prior));
  GpFit fit;
  fit.priors = options_.densities;
  fit.seed = mixed_seed(options_.seed, 3, key);
  // Many outputs say so clearly where the maximum is that one start finds it.
  fit.starts = count <= kFitAlways ? 3 : 1;
  fitted.count = count;
  if (standard.scale > 0)
    fitted.parameters = fit_parameters(inputs.topRows(count),
                                       (first.array() - standard.centre) / standard.scale, fit);
  else
    fitted.parameters = {VectorXd::Ones(inputs.cols()), 1, 1e-6};
  return fitted.parameters;
}

Surrogate::Normal Surrogate::predict(size_t key, const MatrixXd& inputs, const VectorXd& outputs,
                                     const MatrixXd& at, bool from_prior) {
  const Standard standard(outputs, spread(from_prior));
  if (outputs.size() == 0 || standard.scale <= 0)
    return {VectorXd::Constant(at.rows(), standard.centre),
            VectorXd::Constant(at.rows(), standard.scale)};
  const GaussianProcess gp(inputs, (outputs.array() - standard.centre) / standard.scale,
                           parameters(key, inputs, outputs, from_prior));
  const GpPrediction prediction = gp.predict(at);
  return {(prediction.mean.array() * standard.scale + standard.centre).matrix(),
          (prediction.variance.array().sqrt() * standard.scale).matrix()};
}

void Surrogate::believe_objectives(const std::vector<size_t>& rows,
                                   const std::vector<MultiTrial>& trials, const PointViews& seen,
                                   const PointViews& points, Beliefs& beliefs) {
  const std::vector<bool>& known = problem_.prior.known_objectives;
  const MatrixXd inputs = rows_of(seen.inputs, rows), prior = rows_of(seen.objectives, rows);
  for (size_t j = 0; j < problem_.objectives; ++j) {
    const auto column = static_cast<Index>(j);
    beliefs.mean.col(column) = points.objectives.col(column);
    if (options_.use_prior && j < known.size() && known[j]) continue;
    VectorXd outputs(static_cast<Index>(rows.size()));
    for (size_t i = 0; i < rows.size(); ++i)
      outputs[static_cast<Index>(i)] = std::log10(trials[rows[i]].outcome.objectives[j]);
    outputs -= prior.col(column);
    const Normal off = predict(j, inputs, outputs, points.inputs, true);
    beliefs.mean.col(column) += off.mean;
    beliefs.deviation.col(column) = off.deviation;
  }
}

void Surrogate::believe_limits(const std::vector<size_t>& rows,
                               const std::vector<MultiTrial>& trials, const PointViews& seen,
                               const PointViews& points, Beliefs& beliefs) {
  const std::vector<bool>& known = problem_.prior.known_violations;
  const MatrixXd inputs = rows_of(seen.inputs, rows), prior = rows_of(seen.violations, rows);
  for (size_t l = 0; l < problem_.limits; ++l) {
    const auto column = static_cast<Index>(l);
    VectorXd violations(static_cast<Index>(rows.size()));
    for (size_t i = 0; i < rows.size(); ++i)
      violations[static_cast<Index>(i)] = trials[rows[i]].outcome.violations[l];
    Normal off{VectorXd::Zero(points.inputs.rows()), VectorXd::Zero(points.inputs.rows())};
    double limit = 0;
    if (!options_.use_prior || l >= known.size() || !known[l]) {
      if (violations.size() > 0) limit = met_up_to(violations);
      off = predict(problem_.objectives + l, inputs, violations - prior.col(column), points.inputs,
                    true);
    }
    for (Index i = 0; i < points.inputs.rows(); ++i)
      beliefs.feasible[i] *=
          below_probability(limit, points.violations(i, column) + off.mean[i], off.deviation[i]);
  }
}

void Surrogate::believe_results(const std::vector<MultiTrial>& trials, const PointViews& seen,
                                const PointViews& points, Beliefs& beliefs) {
  VectorXd failed(static_cast<Index>(trials.size()));
  for (size_t i = 0; i < trials.size(); ++i)
    failed[static_cast<Index>(i)] = trials[i].outcome.objectives.empty() ? 1 : -1;
  // All alike say nothing of where the others are.
  if (trials.empty() || failed.maxCoeff() == failed.minCoeff()) return;
  const size_t key = problem_.objectives + problem_.limits;
  const Normal label = predict(key, seen.inputs, failed, points.inputs, false);
  for (Index i = 0; i < points.inputs.rows(); ++i)
    beliefs.feasible[i] *= below_probability(0, label.mean[i], label.deviation[i]);
}

Beliefs Surrogate::believe(const std::vector<MultiTrial>& trials, const PointViews& points) {
  std::vector<Point> told;
  std::vector<size_t> rows;  // those with a result
  for (size_t i = 0; i < trials.size(); ++i) {
    told.push_back(trials[i].point);
    if (!trials[i].outcome.objectives.empty()) rows.push_back(i);
  }
  const PointViews seen = view(told);
  const Index count = points.inputs.rows();
  const auto objectives = static_cast<Index>(problem_.objectives);
  Beliefs beliefs{MatrixXd::Zero(count, objectives), MatrixXd::Zero(count, objectives),
                  VectorXd::Ones(count)};
  believe_objectives(rows, trials, seen, points, beliefs);
  believe_limits(rows, trials, seen, points, beliefs);
  believe_results(trials, seen, points, beliefs);
  return beliefs;
}

}  // namespace tilewright::search
