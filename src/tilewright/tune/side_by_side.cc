// The search where several batches are judged at the same time.
//
//   1. A task's first batch is the rules' schedule alone: it sets the scale of its costs. Other
//      tasks begin meanwhile.
//   2. Two batches per device are out at any time, so that none waits for the tuner. Which task the
//      next one is of is decided as one by one (tuner.cc), but what is out already counts.
//   3. A batch is told to its task's searcher as a whole, in order of its points, when it is done.
//   4. When the budget is spent, what is still out is given up.
//
// Example: 2 devices, tasks a and b. Out are the rules of a and b; a's is done: 8 points of a are
// begun; b's is done: 8 of b; two more batches wait at the devices' doors: another of a and of b.
#include <algorithm>

#include "tilewright/tune/tuner.h"

namespace tilewright::tune {
namespace {

constexpr size_t kPerDevice = 2;      ///< batches out
constexpr double kBatchSeconds = 2;   ///< that a batch should take: leases are 30 s
constexpr int kMostPoints = 32;       ///< of a batch, however short they are
constexpr double kLookSeconds = 0.2;  ///< between looks at budget and interrupts

}  // namespace

Result<search::Stop> Tuner::run_side_by_side() {
  while (!stop()) {
    const auto wanted = kPerDevice * static_cast<size_t>(std::max(options_.batches->devices(), 1));
    while (flights_.size() < wanted && !stop() && TW_TRY(launch())) {
    }
    if (flights_.empty() && !stop()) return search::Stop::Exhausted;
    if (const auto judged = TW_TRY(options_.batches->wait(kLookSeconds)))
      TW_TRY_STATUS(land(*judged));
    if (options_.progress) options_.progress();
  }
  leave();
  return stop_;
}

/// One step towards another batch; whether there was anything to do.
Result<bool> Tuner::launch() {
  const int64_t left = options_.trials - trials_ - out_;
  if (left <= 0) return false;
  const size_t index = next();
  if (index == tasks_.size()) return false;
  current_ = index;
  if (!states_[index].visited) return launch_rule(index);
  return launch_points(index, static_cast<int>(std::min<int64_t>(batch_size(index), left)));
}

bool Tuner::launch_rule(size_t index) {
  states_[index].visited = true;
  if (states_[index].rule.readings > 0) return true;  // known of an earlier run
  Pace& pace = paces_[index];
  const TunerTask& task = tasks_[index];
  const int64_t id = options_.batches->begin(task.task, {{{}, task.rule, "", task.expected}});
  flights_.emplace(id, Flight{index, Batch()});
  ++pace.out;
  pace.waits = true;
  return true;
}

Result<bool> Tuner::launch_points(size_t index, int count) {
  Pace& pace = paces_[index];
  Batch batch(proposals(index, count));
  if (batch.points.empty()) {
    // The next space is opened when all of this one is told.
    if (pace.out > 0)
      pace.waits = true;
    else
      TW_TRY_STATUS(widen(index));
    return true;
  }
  std::vector<measure::Candidate> candidates;
  for (size_t i = 0; i < batch.points.size(); ++i) {
    std::optional<measure::Candidate> made = candidate(index, batch, i);
    if (!made) continue;
    made->text = point_text(index, made->point);
    made->prior = tasks_[index].space->prior(made->point);
    candidates.push_back(*std::move(made));
  }
  if (candidates.empty()) {
    settle(index, batch, {});
    TW_TRY_STATUS(account(index, batch));
    return true;
  }
  const int64_t id = options_.batches->begin(tasks_[index].task, candidates);
  ++pace.out;
  pace.out_points += static_cast<int>(batch.points.size());
  out_ += static_cast<int64_t>(batch.points.size());
  flights_.emplace(id, Flight{index, std::move(batch)});
  return true;
}

/// As many candidates as keep a device busy for a while; fewer where there are more batches out
/// than tasks, so that of each task about as many candidates are out as one such batch has: what is
/// out was proposed without knowing of each other. With twice as many, a search of 2 000 trials on
/// 32 devices ended 3.5 % worse (bench/results/fleet.md).
int Tuner::batch_size(size_t index) const {
  const double each = paces_[index].candidate_seconds;
  const int full = each > 0 ? std::clamp(static_cast<int>(kBatchSeconds / each), options_.batch,
                                         std::max(options_.batch, kMostPoints))
                            : options_.batch;
  const auto open = static_cast<int>(std::count_if(
      states_.begin(), states_.end(), [](const TaskState& state) { return !state.exhausted; }));
  const int out = static_cast<int>(kPerDevice) * std::max(options_.batches->devices(), 1);
  return open >= out ? full : std::max(1, full * open / out);
}

Status Tuner::land(const measure::JudgedBatch& judged) {
  const auto found = flights_.find(judged.id);
  if (found == flights_.end()) return {};
  const size_t index = found->second.task;
  Batch batch = std::move(found->second.batch);
  flights_.erase(found);
  Pace& pace = paces_[index];
  --pace.out;
  pace.waits = false;
  pace.out_points -= static_cast<int>(batch.points.size());
  out_ -= static_cast<int64_t>(batch.points.size());
  current_ = index;
  if (batch.points.empty()) {
    const measure::Reading& rule = states_[index].rule = judged.readings.at(0);
    nominal_seconds_ += nominal_seconds(rule);
    if (rule.kind != measure::OutcomeKind::Lost)
      pace.measured.emplace(schedule::print(tasks_[index].rule), rule);
    return {};
  }
  if (judged.seconds > 0) {
    const double each = judged.seconds / static_cast<double>(batch.asked.size());
    pace.candidate_seconds =
        pace.candidate_seconds > 0 ? 0.5 * (pace.candidate_seconds + each) : each;
  }
  settle(index, batch, judged.readings);
  return account(index, batch);
}

/// What is still out is nobody's any more.
void Tuner::leave() {
  options_.batches->cancel();
  for (auto& [id, flight] : flights_) {
    tasks_[flight.task].searcher->give_up(flight.batch.points);
    paces_[flight.task].out = paces_[flight.task].out_points = 0;
    paces_[flight.task].waits = false;
  }
  flights_.clear();
  out_ = 0;
}

}  // namespace tilewright::tune
