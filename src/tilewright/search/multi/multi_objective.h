// Searchers for several objectives under limits, beside `Searcher` for one cost. All methods of a
// contest get the same problem; what they propose next is a pure function of the seed and of the
// trials told so far, so an interrupted search goes on where it was once it is told them again.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/search/multi/pareto.h"
#include "tilewright/search/searcher.h"

namespace tilewright::search {

struct MultiTrial {
  Point point;
  MultiOutcome outcome;
  double seconds = 0;  ///< since the start of the run
};

/// What is said of a point without evaluating it, in the units that models use.
struct PriorValue {
  std::vector<double> log_objectives;  ///< log10
  std::vector<double> violations;      ///< as in MultiOutcome
};

/// An opinion of every point that costs next to nothing. Absent where `at` is empty.
struct Prior {
  std::function<PriorValue(const Point&)> at;
  /// Per objective, per limit: the prior's value is exact. Empty: none is.
  std::vector<bool> known_objectives, known_violations;
  /// How far off the other values are expected to be (standard deviation, log10).
  double spread = 0.05;
};

struct MultiProblem {
  Space space;
  size_t objectives = 2;
  size_t limits = 0;
  /// Points that may be proposed; empty: all of the space.
  std::function<bool(const Point&)> legal;
  /// What models see of a point, each number within [0, 1]. Empty: the features of the space's
  /// values, scaled to [0, 1]; so sizes should have their logarithm as feature.
  Features features;
  Prior prior;
  /// Lower bounds of what an evaluation would give, for `enumerate`.
  std::function<PriorValue(const Point&)> bounds;
  /// Decisions that share work: evaluating points that differ in these alone one after the other,
  /// from their last values down, is cheap. In what order all points are listed for `enumerate`.
  std::vector<size_t> sharing;
};

/// What MOBO maximises, times the probability of meeting the limits.
enum class Acquisition {
  Hvpi,  ///< probability that a draw is not dominated, times the volume that the mean would add
         ///< (source: Couckuyt, Deschrijver, Dhaene, J. Global Optimization 60, 2014)
  Ehvi,  ///< expected volume added, exact
};
/// `hvpi` or `ehvi`.
std::optional<Acquisition> acquisition_named(std::string_view name);

struct MultiOptions {
  uint64_t seed = 0;
  /// Points drawn evenly with which nsga2 and mobo begin: the first that `random` proposes.
  int initial = 10;
  int population = 5;                      ///< of nsga2
  std::optional<Acquisition> acquisition;  ///< else mobo: hvpi, ours: ehvi
  /// Rate of the Gamma density (shape 3) of length-scales. Else mobo: 6, as published; ours: 2. The
  /// smaller, the further models generalise; many inputs want smaller ones.
  std::optional<double> length_rate;
  /// Spaces of up to this many points are listed, and models look at all of them. In larger ones
  /// models look at `drawn` points and the neighbours of the front, drawn anew for each proposal.
  double list_up_to = 1e6;
  int drawn = 100000;
};

/// A way to search. Proposals are legal points never told of; fewer than asked where no more are
/// found. Proposing again without telling proposes the same.
class MultiSearcher {
 public:
  explicit MultiSearcher(MultiProblem problem) : problem_(std::move(problem)) {}
  virtual ~MultiSearcher() = default;
  virtual std::vector<Point> propose(int count) = 0;
  /// Results whose objectives are not all positive numbers count as none; points told before are
  /// ignored.
  void tell(const std::vector<MultiTrial>& trials);

  const MultiProblem& problem() const { return problem_; }
  const std::vector<MultiTrial>& trials() const { return trials_; }
  bool tried(const Point& point) const { return tried_.contains(point); }
  /// Points proved not worth an evaluation; only `enumerate` proves that.
  virtual size_t skipped() const { return 0; }

 private:
  MultiProblem problem_;
  std::vector<MultiTrial> trials_;
  std::set<Point> tried_;
};

/// `random`, `nsga2`, `mobo`, `ours`, `enumerate`.
const std::vector<std::string>& multi_methods();
/// The searcher of that name. Refused: an unknown name, `ours` without a prior, `enumerate` of a
/// space that is too large to list.
Result<std::unique_ptr<MultiSearcher>> multi_searcher(const std::string& method,
                                                      MultiProblem problem,
                                                      const MultiOptions& options);

using MultiEvaluate = std::function<std::vector<MultiOutcome>(const std::vector<Point>&)>;

struct MultiBudget {
  int evaluations = 40;  ///< in all, those told before the run included
  double seconds = std::numeric_limits<double>::infinity();
  int batch = 1;
  std::function<bool()> interrupted;  ///< asked between batches; empty: never
  /// Called with the new trials of each batch before the next one begins: to store them.
  std::function<void(const std::vector<MultiTrial>&)> progress;
};

/// Lets `searcher` propose and `evaluate` judge until the budget is spent or nothing is left to
/// try; the trials are the searcher's.
Stop run(MultiSearcher& searcher, const MultiEvaluate& evaluate, const MultiBudget& budget);

}  // namespace tilewright::search
