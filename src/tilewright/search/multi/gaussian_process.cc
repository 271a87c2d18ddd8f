#include "tilewright/search/multi/gaussian_process.h"

#include <cmath>

#include "tilewright/base/check.h"

namespace tilewright::search {
namespace {

using Eigen::ArrayXXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kRootFive = 2.23606797749979;

/// sqrt(5) times the distances between rows. shape: a m x d, b n x d -> m x n.
ArrayXXd root_five_distances(const MatrixXd& a, const MatrixXd& b) {
  MatrixXd squares = -2.0 * a * b.transpose();
  squares.colwise() += a.rowwise().squaredNorm();
  squares.rowwise() += b.rowwise().squaredNorm().transpose();
  return kRootFive * squares.array().max(0.0).sqrt();
}

ArrayXXd kernel(const ArrayXXd& t, double variance) {
  return variance * (1.0 + t + t.square() / 3.0) * (-t).exp();
}

MatrixXd scaled(MatrixXd inputs, const VectorXd& length_scales) {
  inputs *= length_scales.cwiseInverse().asDiagonal();
  return inputs;
}

}  // namespace

VectorXd GpParameters::logs() const {
  VectorXd all(length_scales.size() + 2);
  all << length_scales.array().log().matrix(), std::log(variance), std::log(noise);
  return all;
}

GpParameters GpParameters::from_logs(const VectorXd& logs) {
  const Eigen::Index inputs = logs.size() - 2;
  return {logs.head(inputs).array().exp().matrix(), std::exp(logs[inputs]),
          std::exp(logs[inputs + 1])};
}

GaussianProcess::GaussianProcess(MatrixXd inputs, VectorXd outputs, GpParameters parameters)
    : inputs_(scaled(std::move(inputs), parameters.length_scales)),
      outputs_(std::move(outputs)),
      parameters_(std::move(parameters)) {
  const Eigen::Index count = outputs_.size();
  TW_CHECK(count > 0 && inputs_.rows() == count, "{} inputs, {} outputs", inputs_.rows(), count);
  MatrixXd covariance =
      kernel(root_five_distances(inputs_, inputs_), parameters_.variance).matrix();
  // Rounding of the distances leaves the diagonal a little off.
  covariance.diagonal().setConstant(parameters_.variance + parameters_.noise);
  factor_.compute(covariance);
  // Noise far below rounding beside inputs that are nearly equal: as much more as it takes.
  for (double more = 1e-10; factor_.info() != Eigen::Success && more < 1; more *= 10) {
    covariance.diagonal().array() += more * parameters_.variance;
    factor_.compute(covariance);
  }
  TW_CHECK(factor_.info() == Eigen::Success, "covariance is not positive definite");
  weights_ = factor_.solve(outputs_);
  const double half_log_determinant = factor_.matrixLLT().diagonal().array().log().sum();
  log_likelihood_ = -0.5 * outputs_.dot(weights_) - half_log_determinant -
                    0.5 * static_cast<double>(count) * std::log(2 * EIGEN_PI);
}

GpPrediction GaussianProcess::predict(const MatrixXd& at) const {
  constexpr Eigen::Index kRows = 2048;  // at a time, so that matrices stay in the cache
  GpPrediction prediction{VectorXd(at.rows()), VectorXd(at.rows())};
  for (Eigen::Index from = 0; from < at.rows(); from += kRows) {
    const Eigen::Index rows = std::min(kRows, at.rows() - from);
    const MatrixXd block = scaled(at.middleRows(from, rows), parameters_.length_scales);
    MatrixXd cross = kernel(root_five_distances(inputs_, block), parameters_.variance).matrix();
    prediction.mean.segment(from, rows) = cross.transpose() * weights_;
    factor_.matrixL().solveInPlace(cross);
    prediction.variance.segment(from, rows) =
        (parameters_.variance - cross.colwise().squaredNorm().transpose().array()).max(0.0);
  }
  return prediction;
}

VectorXd GaussianProcess::log_likelihood_gradient() const {
  const Eigen::Index count = outputs_.size(), inputs = inputs_.cols();
  // By a parameter p: half the sum of the elements of `inner` times those of dK / dp.
  MatrixXd inner = -factor_.solve(MatrixXd::Identity(count, count));
  inner.noalias() += weights_ * weights_.transpose();
  const ArrayXXd t = root_five_distances(inputs_, inputs_);
  VectorXd gradient(inputs + 2);
  gradient[inputs] = 0.5 * (inner.array() * kernel(t, parameters_.variance)).sum();
  gradient[inputs + 1] = 0.5 * parameters_.noise * inner.trace();
  // dk / d log(length_scale) = variance 5/3 (1 + t) exp(-t) (x - y)^2, with x and y scaled; the sum
  // over all pairs of m_pq (x_p - x_q)^2 is 2 sum m_pq x_p^2 - 2 sum m_pq x_p x_q.
  const MatrixXd m =
      (inner.array() * (parameters_.variance * 5.0 / 3.0 * (1.0 + t) * (-t).exp())).matrix();
  const VectorXd rows = m.rowwise().sum();
  const MatrixXd products = m * inputs_;
  for (Eigen::Index j = 0; j < inputs; ++j)
    gradient[j] = inputs_.col(j).cwiseAbs2().dot(rows) - inputs_.col(j).dot(products.col(j));
  return gradient;
}

}  // namespace tilewright::search
