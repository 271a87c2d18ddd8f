#include "tilewright/fleet/measure/model_device.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tilewright/base/names.h"
#include "tilewright/base/rng.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/measure/measure_job.h"

namespace tilewright::fleet {
namespace {

constexpr double kLeastFactor = .7, kMostFactor = 1.4, kNoise = .01;
constexpr int64_t kReadings = 7;  ///< as a processor takes them of a good candidate

/// FNV-1a, made even by a step of SplitMix64: equal on all machines.
uint64_t hash_of(std::string_view text, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325u ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Rng(hash).next();
}

double factor_of(std::string_view decision, const ModelDevice& device) {
  const uint64_t machine = Rng(device.seed * 0x10001 + device.other).next();
  const double place = Rng(hash_of(decision, machine)).uniform();
  return kLeastFactor * std::pow(kMostFactor / kLeastFactor, place);
}

/// Costs without noise of all schedules that model devices of this process have measured: races
/// name schedules only.
class KnownCosts {
 public:
  void keep(const std::string& schedule, double cost) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (costs_.size() > kMost) costs_.clear();
    costs_[hash_of(schedule, 0)] = cost;
  }
  double find(const std::string& schedule) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = costs_.find(hash_of(schedule, 0));
    return found == costs_.end() ? 0 : found->second;
  }

 private:
  static constexpr size_t kMost = 1'000'000;
  mutable std::mutex mutex_;
  std::map<uint64_t, double> costs_;
};
KnownCosts& known_costs() {
  static KnownCosts known;
  return known;
}

class ModelServer final : public JobServer {
 public:
  ModelServer(const ModelDevice& device, std::string key) : device_(device), key_(std::move(key)) {}

  Status serve(const LeasedJob& job, JobPort& port) override {
    if (job.kind == "race") return race(job, port);
    const MeasureRequest request = TW_TRY(measure_request_of(job.payload));
    if (static_cast<int>(request.items.size()) != job.items)
      return fail(ErrorKind::Package, "this job is none of kind measure",
                  fmt::format("{} items, {} candidates", job.items, request.items.size()));
    for (int item = job.next; item < job.items && worked(port); ++item)
      port.add(result_of(item, request.items[static_cast<size_t>(item)]));
    return {};
  }

 private:
  /// A pause as long as a candidate takes; false if the job has to end.
  bool worked(JobPort& port) const {
    constexpr double kSlice = .02;
    const auto begin = SteadyClock::now();
    for (double left = device_.seconds; !port.stop_between_items();
         left = device_.seconds - seconds_since(begin)) {
      if (left <= 0) return true;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kSlice)));
    }
    return false;
  }

  ItemResult result_of(int index, const MeasureItem& item) {
    if (!(item.prior > 0 && std::isfinite(item.prior)))
      return {.item = index, .outcome = "invalid", .reason = "the model has no cost for it"};
    const double cost = model_cost(device_, item.prior, item.point);
    known_costs().keep(item.schedule, cost);
    ItemResult result{.item = index, .outcome = "ok"};
    const double noise = Rng(hash_of(key_, device_.seed) + ++measured_).normal();
    result.cost = result.least = result.fastest = cost * (1 + kNoise * noise);
    result.spread = kNoise;
    result.readings = kReadings;
    return result;
  }

  Status race(const LeasedJob& job, JobPort& port) const {
    const RaceRequest request = TW_TRY(race_request_of(job.payload));
    if (!worked(port)) return {};
    nlohmann::json ratios = nlohmann::json::array();
    double first = 0;
    for (size_t i = 0; i < request.schedules.size(); ++i) {
      const double prior = request.priors.empty() ? 0 : request.priors[i];
      const double cost = prior > 0 && std::isfinite(prior)
                              ? model_cost(device_, prior, request.points[i])
                              : known_costs().find(request.schedules[i]);
      if (i == 0) first = cost;
      ratios.push_back(cost > 0 && first > 0 ? cost / first : -1);
    }
    ItemResult result{.outcome = first > 0 ? "ok" : "invalid"};
    if (first > 0)
      result.output = {{"ratios", ratios}};
    else
      result.reason = "the model has no cost for the first schedule";
    port.add(std::move(result));
    return {};
  }

  const ModelDevice device_;
  const std::string key_;
  uint64_t measured_ = 0;
};

}  // namespace

Result<ModelDevice> parse_model_device(std::string_view text) {
  ModelDevice device;
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorKind::Usage, fmt::format("'{}' is no device", text), why,
                "--device model:seed=3,seconds=0.1,other=7");
  };
  if (text != "model" && !text.starts_with("model:")) return refuse("it begins with 'model'");
  std::string_view rest = text.substr(std::min(text.size(), std::string_view("model:").size()));
  while (!rest.empty()) {
    const std::string part(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const size_t equals = std::min(part.find('='), part.size());
    const std::string word = part.substr(0, equals);
    const std::string value = part.substr(std::min(part.size(), equals + 1));
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    const bool whole = number >= 0 && number < 1e9 && number == std::floor(number);
    if (value.empty() || *end != '\0' || !(number >= 0 && number < 1e9))
      return refuse(fmt::format("'{}' has no number", part));
    if (word == "seconds")
      device.seconds = number;
    else if (word != "seed" && word != "other" && word != "id")
      return refuse(did_you_mean(word, {"seed", "seconds", "other", "id"}));
    else if (!whole)
      return refuse(fmt::format("'{}' has no whole number", part));
    else
      (word == "seed" ? device.seed
       : word == "id" ? device.id
                      : device.other) = static_cast<uint64_t>(number);
  }
  return device;
}

double model_cost(const ModelDevice& device, double prior, std::string_view point) {
  // A value may have spaces: a decision goes up to the next word with an equals sign.
  double cost = prior;
  std::string decision;
  const auto apply = [&] {
    if (!decision.empty()) cost *= factor_of(decision, device);
  };
  while (!point.empty()) {
    const std::string_view word = point.substr(0, point.find(' '));
    point.remove_prefix(std::min(point.size(), word.size() + 1));
    if (word.find('=') != word.npos) {
      apply();
      decision = word;
    } else if (!decision.empty()) {
      decision += fmt::format(" {}", word);
    }
  }
  apply();
  return cost;
}

std::unique_ptr<JobServer> model_server(const ModelDevice& device, std::string key) {
  return std::make_unique<ModelServer>(device, std::move(key));
}

}  // namespace tilewright::fleet
