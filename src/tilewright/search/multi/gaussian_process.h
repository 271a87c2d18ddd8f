// Exact Gaussian-process regression: Matern-5/2 kernel with one length-scale per input, zero mean.
#pragma once

#include <Eigen/Dense>
#include <cstdint>

namespace tilewright::search {

/// k(a, b) = variance (1 + t + t^2 / 3) exp(-t), t = sqrt(5) |(a - b) / length_scales|; outputs are
/// a draw of it plus independent noise.
struct GpParameters {
  Eigen::VectorXd length_scales;
  double variance = 1;
  double noise = 1e-6;  ///< a variance

  /// Logarithms of length-scales, variance and noise, in this order, and back.
  Eigen::VectorXd logs() const;
  static GpParameters from_logs(const Eigen::VectorXd& logs);
};

struct GpPrediction {
  Eigen::VectorXd mean, variance;  ///< of the function, without the noise of an output
};

class GaussianProcess {
 public:
  /// shape: inputs n x d, outputs n. requires: n > 0; length_scales of size d; all parameters > 0.
  GaussianProcess(Eigen::MatrixXd inputs, Eigen::VectorXd outputs, GpParameters parameters);

  /// shape: at m x d.
  GpPrediction predict(const Eigen::MatrixXd& at) const;
  /// Log of the density of the outputs under the parameters.
  double log_likelihood() const { return log_likelihood_; }
  /// Its derivatives by the logarithms of the parameters, in the order of GpParameters::logs.
  Eigen::VectorXd log_likelihood_gradient() const;
  const GpParameters& parameters() const { return parameters_; }

 private:
  Eigen::MatrixXd inputs_;  ///< divided by the length-scales
  Eigen::VectorXd outputs_;
  GpParameters parameters_;
  Eigen::LLT<Eigen::MatrixXd> factor_;  ///< of the covariance of the outputs
  Eigen::VectorXd weights_;             ///< its inverse times the outputs
  double log_likelihood_ = 0;
};

/// What is believed of the parameters before data: Gamma densities of the length-scales (each) and
/// of the variance, none of the noise. The values are those of BoTorch's single-task models.
/// source: BoTorch 0.6, models/gp_regression.py.
struct GpPriors {
  bool none = false;  ///< likelihood alone
  double length_shape = 3, length_rate = 6;
  double variance_shape = 2, variance_rate = 0.15;
};

struct GpFit {
  GpPriors priors;
  int starts = 3;  ///< the modes of the priors, then drawn ones
  int steps = 40;  ///< of each start, at most
  uint64_t seed = 0;
};

/// The parameters with the highest likelihood times prior found from several starts. Length-scales
/// stay within [0.01, 100], the variance within [0.001, 100] and the noise within [1e-7, 0.01]:
/// inputs should lie in the unit cube and outputs have mean 0 and variance 1.
GpParameters fit_parameters(const Eigen::MatrixXd& inputs, const Eigen::VectorXd& outputs,
                            const GpFit& options);

}  // namespace tilewright::search
