// What both forms of the Q-method share: a network of values per direction, its target copy, and
// the samples it learns from.
#pragma once

#include "tilewright/search/network.h"

namespace tilewright::search {

/// One step taken: from `from`, by output `chosen`, to `to`.
struct QSample {
  Eigen::VectorXd from, to;
  int chosen = 0;
  double reward = 0;
};

class QLearner {
 public:
  /// Four layers: inputs - hidden - hidden - hidden - outputs.
  QLearner(size_t inputs, size_t outputs, int hidden, Rng& rng)
      : network_({static_cast<int>(inputs), hidden, hidden, hidden, static_cast<int>(outputs)},
                 rng),
        target_(network_) {}

  void add(QSample sample) { samples_.push_back(std::move(sample)); }
  Eigen::VectorXd values(const Eigen::VectorXd& point) const { return network_(point); }
  size_t parameter_count() const { return network_.parameter_count(); }

  /// Learns alpha * max target(to) + reward on at most 1000 shuffled samples, 32 at a time.
  void epoch(double alpha, double learning_rate, Rng& rng);
  void copy_to_target() { target_ = network_; }
  void reset_optimiser() { network_.reset_optimiser(); }

 private:
  Network network_, target_;
  std::vector<QSample> samples_;
};

}  // namespace tilewright::search
