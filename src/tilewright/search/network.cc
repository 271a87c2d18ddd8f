#include "tilewright/search/network.h"

#include <cmath>

namespace tilewright::search {

Network::Network(const std::vector<int>& widths, Rng& rng) {
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const double limit = 1 / std::sqrt(static_cast<double>(widths[i]));
    Layer layer;
    layer.weights = Eigen::MatrixXd(widths[i + 1], widths[i] + 1);
    for (Eigen::Index k = 0; k < layer.weights.size(); ++k)
      layer.weights.data()[k] = (2 * rng.uniform() - 1) * limit;
    layers_.push_back(std::move(layer));
  }
  reset_optimiser();
}

void Network::reset_optimiser() {
  for (Layer& layer : layers_) {
    const auto zero = Eigen::ArrayXXd::Zero(layer.weights.rows(), layer.weights.cols());
    layer.average = {zero, zero};
  }
}

size_t Network::parameter_count() const {
  Eigen::Index count = 0;
  for (const Layer& layer : layers_) count += layer.weights.size();
  return static_cast<size_t>(count);
}

Eigen::MatrixXd Network::with_ones(const Eigen::MatrixXd& x) {
  Eigen::MatrixXd out(x.rows() + 1, x.cols());
  out << x, Eigen::RowVectorXd::Ones(x.cols());
  return out;
}

Eigen::MatrixXd Network::operator()(const Eigen::MatrixXd& inputs) const {
  Eigen::MatrixXd x = inputs;
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i].weights * with_ones(x);
    if (i + 1 < layers_.size()) x = x.cwiseMax(0.0);
  }
  return x;
}

double Network::train(const Eigen::MatrixXd& inputs, const std::vector<int>& chosen,
                      const std::vector<double>& targets, double learning_rate) {
  std::vector<Eigen::MatrixXd> seen = {with_ones(inputs)};  // what each layer reads
  for (size_t i = 0; i + 1 < layers_.size(); ++i)
    seen.push_back(with_ones((layers_[i].weights * seen.back()).cwiseMax(0.0)));
  const Eigen::MatrixXd out = layers_.back().weights * seen.back();
  Eigen::MatrixXd slope = Eigen::MatrixXd::Zero(out.rows(), out.cols());
  double error = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    const double off = out(chosen[i], column) - targets[i];
    error += off * off;
    slope(chosen[i], column) = 2 * off;
  }
  for (size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    const Eigen::MatrixXd gradient = slope * seen[i].transpose();
    if (i > 0) {
      const Eigen::Index inner = layer.weights.cols() - 1;
      slope = (layer.weights.leftCols(inner).transpose() * slope).eval();
      slope.array() *= (seen[i].topRows(inner).array() > 0).cast<double>();
    }
    step(layer, gradient.array(), learning_rate);
  }
  return error;
}

void Network::step(Layer& layer, const Eigen::ArrayXXd& gradient, double learning_rate) {
  constexpr double kDecay = 0.9, kEpsilon = 1e-6;
  Average& a = layer.average;
  a.gradient = kDecay * a.gradient + (1 - kDecay) * gradient.square();
  const Eigen::ArrayXXd by = ((a.step + kEpsilon) / (a.gradient + kEpsilon)).sqrt() * gradient;
  a.step = kDecay * a.step + (1 - kDecay) * by.square();
  layer.weights.array() -= learning_rate * by;
}

}  // namespace tilewright::search
