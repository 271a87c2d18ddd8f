#include "tilewright/tune/vta/space.h"

#include "tilewright/base/file.h"
#include "tilewright/rules/vta/model.h"
#include "tilewright/rules/vta/schedule.h"
#include "tilewright/tune/vta/cycles.h"

namespace tilewright::tune {
namespace {

class CyclesEvaluator final : public measure::Evaluator {
 public:
  CyclesEvaluator(Func func, vta::Config config, int copies)
      : func_(std::move(func)), config_(std::move(config)), copies_(copies) {}

  std::vector<measure::Reading> evaluate(
      const std::vector<measure::Candidate>& candidates) override {
    std::vector<measure::Reading> readings;
    for (const measure::Candidate& candidate : candidates) {
      measure::Reading& reading = readings.emplace_back();
      const Result<uint64_t> cycles = vta_cycles(func_, candidate.trace, config_, copies_);
      if (!cycles) {
        reading.kind = measure::OutcomeKind::Invalid;
        reading.reason = cycles.error().what;
        continue;
      }
      reading.kind = measure::OutcomeKind::Ok;
      reading.cost = reading.least = static_cast<double>(*cycles);
      reading.readings = 1;
    }
    return readings;
  }

 private:
  Func func_;
  vta::Config config_;
  int copies_;
};

}  // namespace

Result<std::unique_ptr<VtaSpace>> VtaSpace::create(const Func& func, const vta::Config& config,
                                                   const rules::MappingOptions& options) {
  return std::unique_ptr<VtaSpace>(
      new VtaSpace(func, TW_TRY(rules::MappingSpace::create(func, config, options))));
}

Result<schedule::Trace> VtaSpace::trace(const search::Point& point) const {
  const rules::VtaMapping m = mappings_.mapping(point);
  if (!mappings_.works(m))
    return fail(ErrorKind::NotApplicable, "the tiles do not fit on chip", to_string(m));
  return rules::vta_trace(func_, mappings_.config(), m);
}

double VtaSpace::prior(const search::Point& point) const {
  const rules::VtaMapping m = mappings_.mapping(point);
  if (!mappings_.works(m)) return search::kInvalid;
  return static_cast<double>(rules::predict(mappings_.layer(), m, mappings_.config()).cycles);
}

std::vector<double> VtaSpace::terms(const search::Point& point) const {
  const rules::VtaMapping m = mappings_.mapping(point);
  if (!mappings_.works(m)) return {0, 0, 0};
  const rules::VtaCost cost = rules::predict(mappings_.layer(), m, mappings_.config());
  return {static_cast<double>(cost.load), static_cast<double>(cost.compute),
          static_cast<double>(cost.store)};
}

std::unique_ptr<measure::Evaluator> cycles_evaluator(const Func& func, const vta::Config& config,
                                                     int copies) {
  return std::make_unique<CyclesEvaluator>(func, config, copies);
}

std::string vta_target_key(const vta::Config& config) {
  vta::Config unnamed = config;
  unnamed.name = "vta";
  return "vta:" + sha256(vta::to_toml(unnamed)).substr(0, 12);
}

}  // namespace tilewright::tune
