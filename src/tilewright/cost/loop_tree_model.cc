#include "tilewright/cost/loop_tree_model.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "tilewright/base/check.h"
#include "tilewright/base/rng.h"
#include "tilewright/cost/loop_features.h"

namespace tilewright::cost {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr ForKind kLoopKinds[] = {ForKind::Serial, ForKind::Parallel, ForKind::Vector,
                                  ForKind::Unroll};
constexpr size_t kAccesses = 4;
/// Numbers of one loop: its kind, its extent, and stride and whether it moves per access.
constexpr Eigen::Index kLoop = std::size(kLoopKinds) + 1 + 2 * kAccesses;

/// Weights and how Adam moves them. source: Kingma and Ba, arXiv 1412.6980.
struct Weights {
  MatrixXd value, gradient, mean, square;

  Weights(Eigen::Index rows, Eigen::Index columns, Rng& rng) : value(rows, columns) {
    const double limit = std::sqrt(3.0 / static_cast<double>(columns));
    for (Eigen::Index i = 0; i < value.size(); ++i)
      value.data()[i] = (2 * rng.uniform() - 1) * limit;
    gradient = mean = square = MatrixXd::Zero(rows, columns);
  }

  void step(double rate, int time) {
    constexpr double kMean = 0.9, kSquare = 0.999;
    mean = kMean * mean + (1 - kMean) * gradient;
    square = kSquare * square + (1 - kSquare) * gradient.cwiseProduct(gradient);
    const double scale = rate / (1 - std::pow(kMean, time));
    const double root = 1 / std::sqrt(1 - std::pow(kSquare, time));
    value.array() -= scale * mean.array() / (square.array().sqrt() * root + 1e-8);
    gradient.setZero();
  }
};

VectorXd join(const VectorXd& x, const VectorXd& h) {
  VectorXd out(x.size() + h.size() + 1);
  out << x, h, 1;
  return out;
}

/// What one step of the cell computed, for the way back.
struct Step {
  VectorXd input, before, gate, fresh;
};

/// The loops of each block, inside out.
using Chains = std::vector<std::vector<VectorXd>>;

Chains parse(const std::vector<double>& tree) {
  Chains chains;
  for (size_t at = 0; at < tree.size();) {
    const auto loops = static_cast<size_t>(tree[at++]);
    TW_CHECK(at + loops * kLoop <= tree.size(), "loop tree ends early");
    std::vector<VectorXd>& chain = chains.emplace_back();
    for (size_t i = 0; i < loops; ++i, at += kLoop)
      chain.push_back(Eigen::Map<const VectorXd>(tree.data() + at, kLoop));
  }
  return chains;
}

class LoopTreeModel final : public search::Model {
 public:
  explicit LoopTreeModel(const LoopTreeOptions& options)
      : options_(options),
        rng_(options.seed),
        gate_(options.width, kLoop + options.width + 1, rng_),
        fresh_(options.width, kLoop + options.width + 1, rng_),
        out_(1, options.width, rng_) {}

  void fit(const std::vector<std::vector<double>>& features,
           const std::vector<double>& costs) override {
    std::vector<Chains> trees;
    for (const auto& tree : features) trees.push_back(parse(tree));
    std::vector<size_t> order(trees.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int epoch = 0; epoch < options_.epochs; ++epoch) {
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<size_t>(rng_.below(static_cast<int64_t>(i)))]);
      const auto batch = static_cast<size_t>(options_.batch);
      for (size_t i = 0; i < order.size(); i += batch)
        learn(trees, costs,
              {order.begin() + static_cast<long>(i),
               order.begin() + static_cast<long>(std::min(i + batch, order.size()))});
    }
  }

  std::vector<double> score(const std::vector<std::vector<double>>& features) const override {
    std::vector<double> scores;
    for (const auto& tree : features) scores.push_back(forward(parse(tree), nullptr));
    return scores;
  }

 private:
  /// The steps taken are kept in `tape`, chain by chain, if there is one.
  double forward(const Chains& chains, std::vector<std::vector<Step>>* tape) const {
    VectorXd sum = VectorXd::Zero(options_.width);
    for (const auto& chain : chains) {
      VectorXd h = VectorXd::Zero(options_.width);
      if (tape != nullptr) tape->emplace_back();
      for (const VectorXd& loop : chain) {
        Step step{join(loop, h), h, {}, {}};
        step.gate = (1 + (-(gate_.value * step.input).array()).exp()).inverse().matrix();
        step.fresh = (fresh_.value * step.input).array().tanh().matrix();
        h += step.gate.cwiseProduct(step.fresh - h);
        if (tape != nullptr) tape->back().push_back(std::move(step));
      }
      sum += h;
    }
    return (out_.value * sum)(0);
  }

  /// Adds the gradients of `slope` times the score.
  void backward(const std::vector<std::vector<Step>>& tape, double slope) {
    for (const auto& chain : tape) {
      if (chain.empty()) continue;
      const Step& last = chain.back();
      const VectorXd h = last.before + last.gate.cwiseProduct(last.fresh - last.before);
      out_.gradient += slope * h.transpose();
      VectorXd dh = slope * out_.value.transpose();
      for (size_t i = chain.size(); i-- > 0;) {
        const Step& s = chain[i];
        const Eigen::ArrayXd g = s.gate.array(), f = s.fresh.array();
        const VectorXd dgate = (dh.array() * (f - s.before.array()) * g * (1 - g)).matrix();
        const VectorXd dfresh = (dh.array() * g * (1 - f * f)).matrix();
        gate_.gradient += dgate * s.input.transpose();
        fresh_.gradient += dfresh * s.input.transpose();
        const VectorXd dinput = gate_.value.transpose() * dgate + fresh_.value.transpose() * dfresh;
        dh = (dh.array() * (1 - g)).matrix() + dinput.segment(kLoop, options_.width);
      }
    }
  }

  /// One step on all pairs of `batch`: log(1 + exp(worse - better)), which is 0 far apart in order.
  void learn(const std::vector<Chains>& trees, const std::vector<double>& costs,
             const std::vector<size_t>& batch) {
    std::vector<std::vector<std::vector<Step>>> tapes(batch.size());
    std::vector<double> scores, slopes(batch.size(), 0.0);
    for (size_t i = 0; i < batch.size(); ++i) scores.push_back(forward(trees[batch[i]], &tapes[i]));
    double pairs = 0;
    for (size_t i = 0; i < batch.size(); ++i)
      for (size_t j = 0; j < batch.size(); ++j) {
        if (!(costs[batch[i]] < costs[batch[j]])) continue;
        const double pull = 1 / (1 + std::exp(scores[i] - scores[j]));
        slopes[i] -= pull, slopes[j] += pull, ++pairs;
      }
    if (pairs == 0) return;
    for (size_t i = 0; i < batch.size(); ++i) backward(tapes[i], slopes[i] / pairs);
    ++time_;
    for (Weights* w : {&gate_, &fresh_, &out_}) w->step(options_.learning_rate, time_);
  }

  LoopTreeOptions options_;
  Rng rng_;
  Weights gate_, fresh_, out_;
  int time_ = 0;
};

}  // namespace

std::vector<double> loop_tree(const Func& scheduled) {
  std::vector<double> out;
  for (const NestFact& nest : nest_facts(scheduled)) {
    out.push_back(static_cast<double>(nest.loops.size()));
    for (size_t d = nest.loops.size(); d-- > 0;) {
      const LoopFact& loop = nest.loops[d];
      for (const ForKind kind : kLoopKinds) out.push_back(loop.kind == kind ? 1 : 0);
      constexpr double kScale = 0.25;  // logarithms of sizes to about one
      out.push_back(kScale * std::log2(static_cast<double>(loop.extent)));
      for (size_t a = 0; a < kAccesses; ++a) {
        const double stride = a < nest.accesses.size() ? nest.accesses[a].strides[d] : 0;
        out.push_back(kScale * std::log2(1 + stride));
        out.push_back(stride != 0 ? 1 : 0);
      }
    }
  }
  return out;
}

std::unique_ptr<search::Model> loop_tree_model(const LoopTreeOptions& options) {
  return std::make_unique<LoopTreeModel>(options);
}

}  // namespace tilewright::cost
