#include "tilewright/tune/evaluators.h"

#include <cmath>
#include <map>

namespace tilewright::tune {

std::optional<OutcomeKind> outcome_kind(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(OutcomeKind::Lost); ++i)
    if (const auto kind = static_cast<OutcomeKind>(i); to_string(kind) == text) return kind;
  return std::nullopt;
}

Reading reading_of(const Record& record) {
  Reading reading;
  reading.kind = outcome_kind(record.outcome).value_or(OutcomeKind::Lost);
  reading.reason = record.reason;
  reading.cost = record.cost;
  reading.least = record.least;
  reading.spread = record.spread;
  reading.readings = record.readings;
  return reading;
}

namespace {

class ModelEvaluator final : public Evaluator {
 public:
  ModelEvaluator(std::shared_ptr<const ScheduleSpace> space, double rule)
      : space_(std::move(space)), rule_(rule) {}

  std::vector<Reading> evaluate(const std::vector<Candidate>& candidates) override {
    std::vector<Reading> readings;
    for (const Candidate& candidate : candidates) {
      Reading& reading = readings.emplace_back();
      reading.cost = candidate.point.empty() ? rule_ : space_->prior(candidate.point);
      reading.least = reading.cost;
      reading.readings = 1;
      reading.kind = std::isfinite(reading.cost) ? OutcomeKind::Ok : OutcomeKind::Invalid;
      if (reading.kind == OutcomeKind::Invalid) reading.reason = "the model has no time for it";
    }
    return readings;
  }

 private:
  std::shared_ptr<const ScheduleSpace> space_;
  double rule_;
};

class ReplayEvaluator final : public Evaluator {
 public:
  explicit ReplayEvaluator(const std::vector<Record>& records) {
    for (const Record& record : records) known_.emplace(record.schedule, reading_of(record));
  }

  std::vector<Reading> evaluate(const std::vector<Candidate>& candidates) override {
    std::vector<Reading> readings;
    for (const Candidate& candidate : candidates) {
      const auto found = known_.find(schedule::print(candidate.trace));
      readings.push_back(found == known_.end()
                             ? Reading{OutcomeKind::Lost, "never measured", 0, 0, 0, 0}
                             : found->second);
    }
    return readings;
  }

 private:
  std::map<std::string, Reading> known_;
};

}  // namespace

std::unique_ptr<Evaluator> model_evaluator(std::shared_ptr<const ScheduleSpace> space,
                                           double rule) {
  return std::make_unique<ModelEvaluator>(std::move(space), rule);
}

std::unique_ptr<Evaluator> replay_evaluator(const std::vector<Record>& records) {
  return std::make_unique<ReplayEvaluator>(records);
}

}  // namespace tilewright::tune
