// The searchers there are.
#pragma once

#include "tilewright/search/searcher.h"

namespace tilewright::search {

/// Even draws without repetition.
std::unique_ptr<Searcher> random_searcher(const Space& space, uint64_t seed);

/// These points in their order, and then none.
std::unique_ptr<Searcher> list_searcher(const Space& space, std::vector<Point> points);

/// One walk: a random neighbour is accepted if cheaper, else with probability
/// exp(-log(cost / present) / temperature); the temperature falls by `cooling` per trial.
struct AnnealingOptions {
  double temperature = 0.5, cooling = 0.99;
};
std::unique_ptr<Searcher> annealing_searcher(const Space& space, uint64_t seed,
                                             const AnnealingOptions& options = {});

/// Probability that a start of performance `e` is taken where the best is `best` (performance =
/// 1 / cost): exp(-gamma (best - e) / best). source: FlexTensor paper, section 5.1.
double start_probability(double e, double best, double gamma);

/// FlexTensor's P-method: all directions of each start, no network. source: section 6.5; the choice
/// of starts is the released code's.
struct PMethodOptions {
  double gamma = 0.5;
};
std::unique_ptr<Searcher> p_searcher(const Space& space, uint64_t seed,
                                     const PMethodOptions& options = {});

/// FlexTensor's Q-method. source: section 5.1; values the paper does not give are the released
/// code's.
struct QMethodOptions {
  enum class Form {
    Paper,    ///< one network; starts drawn by simulated annealing; reward (E_e - E_p) / E_p;
              ///< trained every five trials, then copied to the target network
    Released  ///< one network per decision, one neighbour per decision and start, best starts
              ///< removed once used, epsilon-greedy, reward tanh(max(0, t_p - t_e)) of
              ///< milliseconds, five trainings of 20 epochs per run
  } form = Form::Paper;
  int starts = 1;  ///< per step
  /// Paper: starts are the cheapest trials, not drawn. These have the highest values
  /// exp(-(l - l*) / l*), by which HASCO chooses. source: HASCO paper, section VI, where the sign
  /// is misprinted.
  bool cheapest_starts = false;
  /// Where 0, the form's own. The paper gives none: in its form gamma is 5, as performances differ
  /// less than times do; alpha 0.3, as rewards to come are few where no step goes back; AdaDelta's
  /// rate 1, as published. The released code: 0.5 (on times), 0.9, 0.02.
  double gamma = 0, alpha = 0, learning_rate = 0;
  int epochs = 0;     ///< per training; 0: 2, or released, 20
  int warm_up = 100;  ///< Paper: random trials before the first move
  int hidden = 64;
  int planned_trials = 1000;  ///< Released: trains five times in as many
  double cost_to_ms = 1e-6;   ///< Released
};
std::unique_ptr<Searcher> q_searcher(const Space& space, uint64_t seed,
                                     const QMethodOptions& options = {});

struct EvolutionOptions {
  int population = 32;
  double random_share = 0.1, crossover_share = 0.4;
};
std::unique_ptr<Searcher> evolution_searcher(const Space& space, uint64_t seed,
                                             const EvolutionOptions& options = {});

/// Points of another space, as a model sees them, and what they cost there.
struct KnownSamples {
  std::vector<std::vector<double>> features;  ///< as many of each as of the space that is searched
  std::vector<double> costs;                  ///< in any unit: they are compared with each other
};

/// TVM's explorer: parallel annealing chains over a learned model's scores. The chains go on where
/// they were when the model is updated; a random batch while there are no data. source: TVM paper,
/// section 5.3.
struct ModelGuidedOptions {
  int chains = 128, steps = 100;
  double temperature = 1.0, random_share = 0.05;
  int refit_every = 16;  ///< trials
  Features features;
  /// Of other spaces: the model learns from them before there is any trial, and beside the trials.
  std::vector<KnownSamples> known;
};
std::unique_ptr<Searcher> model_searcher(const Space& space, uint64_t seed,
                                         std::unique_ptr<Model> model,
                                         const ModelGuidedOptions& options = {});

/// Ours: an analytical prior ranks the space, a few measurements correct it, local moves finish.
struct PriorGuidedOptions {
  /// Predicted cost; kInvalid for points known not to work.
  std::function<double(const Point&)> prior;
  Features features;  ///< for the residual, besides the decisions' own: the prior's terms
  /// Spaces up to this size are ranked whole; in larger ones as many points are bred.
  int enumerate = 20000;
  int first = 8;             ///< measured by the prior alone
  double local_share = 0.5;  ///< of later proposals: neighbours of the best
  double spread = 0.3;       ///< weight of unexplored features against predicted gain
};
std::unique_ptr<Searcher> prior_searcher(const Space& space, uint64_t seed,
                                         const PriorGuidedOptions& options);

}  // namespace tilewright::search
