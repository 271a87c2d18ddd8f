#include "tilewright/tune/evaluators.h"

#include <cmath>
#include <map>

namespace tilewright::tune {

measure::Reading reading_of(const records::Record& record) {
  measure::Reading reading;
  reading.kind = measure::outcome_kind(record.outcome).value_or(measure::OutcomeKind::Lost);
  reading.reason = record.reason;
  reading.cost = record.cost;
  reading.least = record.least;
  reading.spread = record.spread;
  reading.readings = record.readings;
  return reading;
}

namespace {

class ModelEvaluator final : public measure::Evaluator {
 public:
  ModelEvaluator(std::shared_ptr<const ScheduleSpace> space, double rule)
      : space_(std::move(space)), rule_(rule) {}

  std::vector<measure::Reading> evaluate(
      const std::vector<measure::Candidate>& candidates) override {
    std::vector<measure::Reading> readings;
    for (const measure::Candidate& candidate : candidates) {
      measure::Reading& reading = readings.emplace_back();
      reading.cost = candidate.point.empty() ? rule_ : space_->prior(candidate.point);
      reading.least = reading.cost;
      reading.readings = 1;
      reading.kind =
          std::isfinite(reading.cost) ? measure::OutcomeKind::Ok : measure::OutcomeKind::Invalid;
      if (reading.kind == measure::OutcomeKind::Invalid)
        reading.reason = "the model has no time for it";
    }
    return readings;
  }

 private:
  std::shared_ptr<const ScheduleSpace> space_;
  double rule_;
};

class ReplayEvaluator final : public measure::Evaluator {
 public:
  explicit ReplayEvaluator(const std::vector<records::Record>& records) {
    for (const records::Record& record : records)
      known_.emplace(record.schedule, reading_of(record));
  }

  std::vector<measure::Reading> evaluate(
      const std::vector<measure::Candidate>& candidates) override {
    std::vector<measure::Reading> readings;
    for (const measure::Candidate& candidate : candidates) {
      const auto found = known_.find(schedule::print(candidate.trace));
      readings.push_back(found == known_.end() ? measure::Reading{measure::OutcomeKind::Lost,
                                                                  "never measured", 0, 0, 0, 0}
                                               : found->second);
    }
    return readings;
  }

 private:
  std::map<std::string, measure::Reading> known_;
};

}  // namespace

std::unique_ptr<measure::Evaluator> model_evaluator(std::shared_ptr<const ScheduleSpace> space,
                                                    double rule) {
  return std::make_unique<ModelEvaluator>(std::move(space), rule);
}

std::unique_ptr<measure::Evaluator> replay_evaluator(const std::vector<records::Record>& records) {
  return std::make_unique<ReplayEvaluator>(records);
}

}  // namespace tilewright::tune
