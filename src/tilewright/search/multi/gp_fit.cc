// Maximum of the likelihood times the priors: BFGS in the logarithms of the parameters within a
// box, from several starts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/base/rng.h"
#include "tilewright/search/multi/gaussian_process.h"

namespace tilewright::search {
namespace {

using Eigen::VectorXd;

/// To be minimised, with its gradient.
struct Loss {
  double value = std::numeric_limits<double>::infinity();
  VectorXd gradient;
};

class FitLoss {
 public:
  FitLoss(const Eigen::MatrixXd& inputs, const VectorXd& outputs, const GpPriors& priors)
      : inputs_(inputs), outputs_(outputs), priors_(priors) {
    const Eigen::Index d = inputs.cols();
    low_ = VectorXd::Constant(d + 2, std::log(0.01));
    high_ = VectorXd::Constant(d + 2, std::log(100.0));
    low_[d] = std::log(0.001);
    low_[d + 1] = std::log(1e-7), high_[d + 1] = std::log(0.01);
  }

  Loss operator()(const VectorXd& logs) const {
    const GaussianProcess gp(inputs_, outputs_, GpParameters::from_logs(logs));
    Loss loss{-gp.log_likelihood(), -gp.log_likelihood_gradient()};
    if (priors_.none) return loss;
    const Eigen::Index d = inputs_.cols();
    for (Eigen::Index j = 0; j <= d; ++j) {
      // log of a Gamma density, without what is constant: (shape - 1) log x - rate x.
      const double shape = j < d ? priors_.length_shape : priors_.variance_shape;
      const double rate = j < d ? priors_.length_rate : priors_.variance_rate;
      const double x = std::exp(logs[j]);
      loss.value -= (shape - 1) * logs[j] - rate * x;
      loss.gradient[j] -= (shape - 1) - rate * x;
    }
    return loss;
  }

  VectorXd inside(const VectorXd& logs) const { return logs.cwiseMax(low_).cwiseMin(high_); }
  /// 0 where a step against `gradient` would leave the box at once, else 1.
  VectorXd free(const VectorXd& at, const VectorXd& gradient) const {
    VectorXd mask = VectorXd::Ones(at.size());
    for (Eigen::Index j = 0; j < at.size(); ++j)
      if ((at[j] <= low_[j] && gradient[j] > 0) || (at[j] >= high_[j] && gradient[j] < 0))
        mask[j] = 0;
    return mask;
  }

  /// The modes of the priors, or without priors the middle of what is usual; noise small.
  VectorXd first_start() const {
    const Eigen::Index d = inputs_.cols();
    VectorXd start(d + 2);
    const double length = priors_.none ? 0.5 : (priors_.length_shape - 1) / priors_.length_rate;
    start.head(d).setConstant(std::log(length));
    start[d] = 0;
    start[d + 1] = std::log(1e-5);
    return inside(start);
  }
  VectorXd drawn_start(Rng& rng) const {
    VectorXd start = first_start();
    for (Eigen::Index j = 0; j < start.size(); ++j) start[j] += rng.normal();
    return inside(start);
  }

 private:
  const Eigen::MatrixXd& inputs_;
  const VectorXd& outputs_;
  const GpPriors& priors_;
  VectorXd low_, high_;
};

struct Found {
  VectorXd at;
  Loss loss;
};

/// The first of ever shorter steps along `direction` that lowers the loss enough; absent if none.
bool line_search(const FitLoss& loss, Found& found, const VectorXd& direction) {
  constexpr double kLongest = 2;  // in the logarithm of a parameter
  const double longest = direction.cwiseAbs().maxCoeff();
  double share = longest > kLongest ? kLongest / longest : 1;
  for (int attempt = 0; attempt < 12; ++attempt, share *= 0.4) {
    const VectorXd at = loss.inside(found.at + share * direction);
    Loss next = loss(at);
    if (next.value <= found.loss.value + 1e-4 * found.loss.gradient.dot(at - found.at)) {
      found = {at, std::move(next)};
      return true;
    }
  }
  return false;
}

Found minimise(const FitLoss& loss, const VectorXd& start, int steps) {
  const Eigen::Index size = start.size();
  Found found{start, loss(start)};
  Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(size, size);  // of the second derivatives
  for (int step = 0; step < steps; ++step) {
    const VectorXd mask = loss.free(found.at, found.loss.gradient);
    const VectorXd gradient = found.loss.gradient.cwiseProduct(mask);
    if (gradient.cwiseAbs().maxCoeff() < 1e-4) break;
    VectorXd direction = -(inverse * gradient).cwiseProduct(mask);
    if (direction.dot(gradient) >= 0) {
      inverse.setIdentity();
      direction = -gradient;
    }
    const Found before = found;
    if (!line_search(loss, found, direction)) break;
    const VectorXd s = found.at - before.at;
    const VectorXd y = found.loss.gradient - before.loss.gradient;
    const double along = s.dot(y);
    if (before.loss.value - found.loss.value < 1e-7) break;
    if (along <= 1e-10) continue;
    if (step == 0) inverse *= along / y.squaredNorm();
    const VectorXd h = inverse * y;
    inverse += (1 + y.dot(h) / along) / along * s * s.transpose() -
               (h * s.transpose() + s * h.transpose()) / along;
  }
  return found;
}

}  // namespace

GpParameters fit_parameters(const Eigen::MatrixXd& inputs, const VectorXd& outputs,
                            const GpFit& options) {
  const FitLoss loss(inputs, outputs, options.priors);
  Rng rng(options.seed);
  Found best = minimise(loss, loss.first_start(), options.steps);
  for (int start = 1; start < options.starts; ++start) {
    const VectorXd at = loss.drawn_start(rng);
    Found found = minimise(loss, at, options.steps);
    if (found.loss.value < best.loss.value) best = std::move(found);
  }
  return GpParameters::from_logs(best.at);
}

}  // namespace tilewright::search
