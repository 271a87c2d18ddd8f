#include "tilewright/search/q_learner.h"

#include <algorithm>

namespace tilewright::search {

void QLearner::epoch(double alpha, double learning_rate, Rng& rng) {
  constexpr size_t kMost = 1000, kBatch = 32;
  if (samples_.empty()) return;
  std::vector<size_t> order(samples_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  order.resize(std::min(order.size(), kMost));
  for (size_t begin = 0; begin < order.size(); begin += kBatch) {
    const size_t count = std::min(kBatch, order.size() - begin);
    const auto columns = static_cast<Eigen::Index>(count);
    Eigen::MatrixXd from(samples_[0].from.size(), columns), to(samples_[0].to.size(), columns);
    for (size_t i = 0; i < count; ++i) {
      from.col(static_cast<Eigen::Index>(i)) = samples_[order[begin + i]].from;
      to.col(static_cast<Eigen::Index>(i)) = samples_[order[begin + i]].to;
    }
    const Eigen::RowVectorXd ahead = target_(to).colwise().maxCoeff();
    std::vector<int> chosen;
    std::vector<double> targets;
    for (size_t i = 0; i < count; ++i) {
      const QSample& sample = samples_[order[begin + i]];
      chosen.push_back(sample.chosen);
      targets.push_back(alpha * ahead(static_cast<Eigen::Index>(i)) + sample.reward);
    }
    network_.train(from, chosen, targets, learning_rate);
  }
}

}  // namespace tilewright::search
