// A small fully connected network with ReLU between its layers, trained by AdaDelta.
#pragma once

#include <Eigen/Dense>
#include <vector>

#include "tilewright/base/rng.h"

namespace tilewright::search {

class Network {
 public:
  /// `widths`: of the input, the hidden layers and the output; weights drawn evenly within
  /// 1 / sqrt(inputs) of each layer.
  Network(const std::vector<int>& widths, Rng& rng);

  /// One column per sample. shape: inputs x samples -> outputs x samples.
  Eigen::MatrixXd operator()(const Eigen::MatrixXd& inputs) const;

  /// One AdaDelta step on the summed squared error of output `chosen[i]` of sample i against
  /// `targets[i]`; the error before the step. source: Zeiler, arXiv 1212.5701 (decay 0.9, 1e-6).
  double train(const Eigen::MatrixXd& inputs, const std::vector<int>& chosen,
               const std::vector<double>& targets, double learning_rate);

  /// Forgets the averages of past steps, as making the optimiser anew does.
  void reset_optimiser();
  size_t parameter_count() const;

 private:
  struct Average {
    Eigen::ArrayXXd gradient, step;
  };
  struct Layer {
    Eigen::MatrixXd weights;  ///< outputs x (inputs + 1): the last column is the bias
    Average average;
  };
  static Eigen::MatrixXd with_ones(const Eigen::MatrixXd& x);
  static void step(Layer& layer, const Eigen::ArrayXXd& gradient, double learning_rate);

  std::vector<Layer> layers_;
};

}  // namespace tilewright::search
