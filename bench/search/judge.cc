#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tilewright/base/file.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::bench {
namespace {

/// Costs below this share of the least known are doubted.
constexpr double kTooGood = 0.7;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string key_of(const schedule::Trace& trace) {
  return sha256(schedule::print(trace)).substr(0, 24);
}

}  // namespace

Status Judge::load(const std::string& file) {
  file_ = file;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json item = nlohmann::json::parse(line, nullptr, false);
    if (item.is_discarded()) continue;  // the last line of a run that was killed
    if (item.contains("rule_ns")) {
      rule_ns_ = item["rule_ns"];
      if (item.value("task", "") != task_.key())
        return fail(ErrorKind::Package, fmt::format("{} is about another kernel", file));
      continue;
    }
    Verdict verdict;
    verdict.reason = item.value("reason", "");
    if (item.contains("cost")) verdict.cost = item["cost"];
    least_ = std::min(least_, verdict.cost);
    verdict.seconds = item.value("seconds", 0.0);
    verdicts_[item.value("trace", "")] = verdict;
  }
  return {};
}

Result<std::unique_ptr<Judge>> Judge::open(const measure::Task& task, const std::string& file,
                                           measure::Measurer* measurer) {
  std::unique_ptr<Judge> judge(new Judge(task));
  TW_TRY_STATUS(judge->load(file));
  if (measurer == nullptr) return judge;
  const bool first = judge->rule_ns_ == 0;
  judge->measurer_ = measurer;
  const measure::Reading reading = TW_TRY(judge->start());
  if (reading.kind != measure::OutcomeKind::Ok)
    return fail(ErrorKind::Tool,
                fmt::format("the rule's schedule of {} cannot be measured", task.name),
                reading.reason);
  if (first)
    std::ofstream(file, std::ios::app)
        << nlohmann::json{{"rule_ns", reading.cost}, {"task", task.key()}, {"name", task.name}}
        << "\n";
  return judge;
}

Result<measure::Reading> Judge::start() {
  evaluator_ = TW_TRY(measurer_->evaluator(task_));
  rule_ = rules::default_trace(task_.func, task_.cpu(), task_.threads);
  const measure::Reading reading = evaluator_->evaluate({{{}, rule_}}).at(0);
  if (reading.kind == measure::OutcomeKind::Ok) rule_ns_ = reading.cost;
  return reading;
}

double Judge::confirmed(const schedule::Trace& trace) {
  constexpr int kRounds = 9;
  const auto ratios = measurer_->race(task_, {rule_, trace}, kRounds);
  if (!ratios) return search::kInvalid;
  const double known = rule_ns_;
  static_cast<void>(start());
  if (rule_ns_ == 0) rule_ns_ = known;
  return ratios->at(1);
}

void Judge::measure(const std::vector<std::string>& keys,
                    const std::vector<measure::Candidate>& unknown) {
  const double begin = now(), scale = rule_ns_;
  const std::vector<measure::Reading> readings = evaluator_->evaluate(unknown);
  const double seconds = (now() - begin) / static_cast<double>(unknown.size());
  std::ofstream out(file_, std::ios::app);
  for (size_t i = 0; i < unknown.size(); ++i) {
    const measure::Reading& reading = readings[i];
    if (reading.kind == measure::OutcomeKind::Lost) continue;  // says nothing about the schedule
    Verdict verdict;
    verdict.seconds = seconds;
    const bool doubted =
        reading.kind == measure::OutcomeKind::Ok && reading.cost / scale < kTooGood * least_;
    nlohmann::json line = {{"trace", keys[i]}, {"seconds", seconds}};
    if (reading.kind == measure::OutcomeKind::Ok) {
      verdict.cost = doubted ? confirmed(unknown[i].trace) : reading.cost / scale;
      if (std::isinf(verdict.cost)) continue;
      line["cost"] = verdict.cost;
      least_ = std::min(least_, verdict.cost);
    } else {
      line["reason"] = verdict.reason = std::string(to_string(reading.kind));
    }
    out << line << "\n";
    verdicts_[keys[i]] = verdict;
    ++measured_;
    if (!doubted) continue;
    out.flush();
    const auto rest = static_cast<long>(i) + 1;  // measured on the doubtful scale
    if (rest < static_cast<long>(unknown.size()))
      measure({keys.begin() + rest, keys.end()}, {unknown.begin() + rest, unknown.end()});
    return;
  }
}

std::vector<Verdict> Judge::judge(const std::vector<schedule::Trace>& traces) {
  std::vector<std::string> keys, fresh;
  std::vector<measure::Candidate> unknown;
  for (const schedule::Trace& trace : traces) {
    keys.push_back(key_of(trace));
    if (verdicts_.contains(keys.back()) || evaluator_ == nullptr) continue;
    if (std::find(fresh.begin(), fresh.end(), keys.back()) != fresh.end()) continue;
    fresh.push_back(keys.back());
    unknown.push_back({{}, trace});
  }
  if (!unknown.empty()) measure(fresh, unknown);
  std::vector<Verdict> out;
  for (const std::string& key : keys) {
    const auto found = verdicts_.find(key);
    out.push_back(found == verdicts_.end() ? Verdict{search::kInvalid, "not measured", 0}
                                           : found->second);
  }
  return out;
}

}  // namespace tilewright::bench
