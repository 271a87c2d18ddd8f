// Costs of schedules that are measured once and remembered, so that many searches can share them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/measure/measurer.h"
#include "tilewright/search/searcher.h"

namespace tilewright::bench {

/// What one schedule costs, and what finding that out took.
struct Verdict {
  double cost = search::kInvalid;  ///< of that of the schedule by rule
  std::string reason;              ///< why there is no cost
  double seconds = 0;              ///< of compiling and measuring, when it was measured
};

/// Judges schedules of one task by measuring those that are new. Costs are shares of the rule's
/// schedule's, which is measured first in every process, so verdicts of several runs compare.
class Judge {
 public:
  /// Verdicts are read from and appended to `file` (JSON lines). Without a measurer only known
  /// schedules have a cost.
  static Result<std::unique_ptr<Judge>> open(const measure::Task& task, const std::string& file,
                                             measure::Measurer* measurer);

  std::vector<Verdict> judge(const std::vector<schedule::Trace>& traces);
  double rule_ns() const { return rule_ns_; }
  size_t known() const { return verdicts_.size(); }
  size_t measured() const { return measured_; }

 private:
  explicit Judge(measure::Task task) : task_(std::move(task)) {}
  Status load(const std::string& file);
  /// A new evaluator, whose scale is the rule's schedule; its reading.
  Result<measure::Reading> start();
  /// The cost by a race against the rule's schedule; then begins anew, for the evaluator's scale
  /// may have moved with a lucky reading. kInvalid if the race fails.
  double confirmed(const schedule::Trace& trace);
  void measure(const std::vector<std::string>& keys,
               const std::vector<measure::Candidate>& unknown);

  measure::Task task_;
  std::string file_;
  measure::Measurer* measurer_ = nullptr;
  std::unique_ptr<measure::Evaluator> evaluator_;
  schedule::Trace rule_;
  std::map<std::string, Verdict> verdicts_;  ///< by hash of the printed trace
  double rule_ns_ = 0;
  double least_ = 1;  ///< cost of the cheapest known, of the rule's
  size_t measured_ = 0;
};

}  // namespace tilewright::bench
