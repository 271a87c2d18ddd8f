#include "tilewright/search/multi/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <vector>

#include "tilewright/base/rng.h"

namespace tilewright::search {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// One case of testing/gp_reference.txt, which testing/gp_reference.py describes.
struct ReferenceCase {
  GpParameters parameters;
  MatrixXd inputs, at;
  VectorXd outputs, mean, deviation, gradient;
  double likelihood = 0, best = 0;
};

VectorXd read_numbers(std::istream& in, Eigen::Index count) {
  VectorXd numbers(count);
  for (Eigen::Index i = 0; i < count; ++i) in >> numbers[i];
  return numbers;
}

MatrixXd read_rows(std::istream& in, Eigen::Index rows, Eigen::Index columns) {
  MatrixXd matrix(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i) matrix.row(i) = read_numbers(in, columns).transpose();
  return matrix;
}

std::vector<ReferenceCase> reference_cases() {
  std::ifstream in(std::string(TILEWRIGHT_SOURCE_DIR) + "/testing/gp_reference.txt");
  std::vector<ReferenceCase> cases;
  for (Eigen::Index n, d, m; in >> n >> d >> m;) {
    ReferenceCase one;
    one.parameters.length_scales = read_numbers(in, d);
    in >> one.parameters.variance >> one.parameters.noise;
    one.inputs = read_rows(in, n, d);
    one.outputs = read_numbers(in, n);
    one.at = read_rows(in, m, d);
    one.mean = read_numbers(in, m);
    one.deviation = read_numbers(in, m);
    in >> one.likelihood;
    one.gradient = read_numbers(in, d + 2);
    in >> one.best;
    cases.push_back(one);
  }
  return cases;
}

void expect_near(const VectorXd& ours, const VectorXd& theirs, double error) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (Eigen::Index i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], theirs[i], error * (1 + std::abs(theirs[i]))) << i;
}

TEST(GaussianProcess, AgreesWithScikitLearn) {
  const std::vector<ReferenceCase> cases = reference_cases();
  ASSERT_EQ(cases.size(), 4u);
  for (const ReferenceCase& one : cases) {
    const GaussianProcess gp(one.inputs, one.outputs, one.parameters);
    const GpPrediction prediction = gp.predict(one.at);
    expect_near(prediction.mean, one.mean, 1e-8);
    expect_near(prediction.variance.cwiseSqrt(), one.deviation, 1e-7);
    EXPECT_NEAR(gp.log_likelihood(), one.likelihood, 1e-7 * (1 + std::abs(one.likelihood)));
    expect_near(gp.log_likelihood_gradient(), one.gradient, 1e-6);
  }
}

TEST(GaussianProcess, FitsAtLeastAsLikelyParametersAsScikitLearn) {
  for (const ReferenceCase& one : reference_cases()) {
    GpFit fit;
    fit.priors.none = true;
    fit.starts = 8, fit.steps = 200;
    const GpParameters parameters = fit_parameters(one.inputs, one.outputs, fit);
    EXPECT_GE(GaussianProcess(one.inputs, one.outputs, parameters).log_likelihood(),
              one.best - 0.01);
  }
}

double log_gamma_density(double x, double shape, double rate) {
  return (shape - 1) * std::log(x) - rate * x;
}

TEST(GaussianProcess, FittedParametersAreTheMostProbable) {
  const ReferenceCase one = reference_cases()[2];
  auto posterior = [&](const GpParameters& p) {
    double log = GaussianProcess(one.inputs, one.outputs, p).log_likelihood() +
                 log_gamma_density(p.variance, 2, 0.15);
    for (double length : p.length_scales) log += log_gamma_density(length, 3, 6);
    return log;
  };
  const GpParameters best = fit_parameters(one.inputs, one.outputs, {});
  const double highest = posterior(best);
  Rng rng(10);
  for (int i = 0; i < 300; ++i) {
    VectorXd logs = best.logs();
    const double far = i % 2 == 0 ? 0.05 : 1.0;
    for (Eigen::Index j = 0; j < logs.size(); ++j) logs[j] += far * rng.normal();
    GpParameters other = GpParameters::from_logs(logs);
    other.noise = std::min(0.01, std::max(1e-7, other.noise));
    EXPECT_LE(posterior(other), highest + 1e-3);
  }
}

TEST(GaussianProcess, PassesThroughOutputsWithoutNoise) {
  const ReferenceCase one = reference_cases()[2];
  GpParameters parameters = one.parameters;
  parameters.noise = 1e-10;
  const GpPrediction prediction =
      GaussianProcess(one.inputs, one.outputs, parameters).predict(one.inputs);
  expect_near(prediction.mean, one.outputs, 1e-6);
  EXPECT_LT(prediction.variance.maxCoeff(), 1e-6);
}

TEST(GaussianProcess, TakesEqualInputs) {
  MatrixXd inputs(4, 1);
  inputs << 0.5, 0.5, 0.5, 0.5;
  VectorXd outputs(4);
  outputs << 1, -1, 1, -1;
  const GaussianProcess gp(inputs, outputs, fit_parameters(inputs, outputs, {}));
  EXPECT_NEAR(gp.predict(inputs).mean[0], 0, 1e-6);
  const GaussianProcess close(inputs, outputs, {VectorXd::Ones(1), 1, 1e-18});
  EXPECT_TRUE(std::isfinite(close.predict(inputs).mean[0]));
}

}  // namespace
}  // namespace tilewright::search
