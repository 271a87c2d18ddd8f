#include "tilewright/fleet/lease_watch.h"

#include <time.h>

#include <algorithm>
#include <chrono>

namespace tilewright::fleet {
namespace {

/// Of a lease's time: how often it is renewed, how soon again where that failed, and how long after
/// the last renewal it is used.
constexpr double kRenewEvery = 1. / 3, kRetryAfter = 1. / 30, kUsedFor = .8;

}  // namespace

double boot_seconds() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

LeaseWatch::LeaseWatch(Renew renew, double sent, double seconds, std::function<double()> clock)
    : renew_(std::move(renew)),
      seconds_(seconds),
      clock_(std::move(clock)),
      alive_since_(sent),
      thread_([this] { loop(); }) {}

LeaseWatch::~LeaseWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool LeaseWatch::lost() const { return stale_ || clock_() >= alive_since_ + kUsedFor * seconds_; }

bool LeaseWatch::cancelled(const std::string& job) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_.count(job) > 0;
}

void LeaseWatch::hear(const nlohmann::json& answer) {
  if (!answer.is_object()) return;
  if (const auto drain = answer.find("drain"); drain != answer.end() && drain->is_boolean())
    drain_ = drain->get<bool>();
  if (const auto yield = answer.find("yield"); yield != answer.end() && yield->is_boolean())
    yield_ = yield->get<bool>();
  const auto cancel = answer.find("cancel");
  if (cancel == answer.end() || !cancel->is_array()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const nlohmann::json& job : *cancel)
    if (job.is_string()) cancelled_.insert(job.get<std::string>());
}

void LeaseWatch::loop() {
  double pause = kRenewEvery * seconds_;
  std::unique_lock<std::mutex> lock(mutex_);
  while (
      !changed_.wait_for(lock, std::chrono::duration<double>(pause), [this] { return ending_; })) {
    lock.unlock();
    const double sent = clock_();
    const Result<nlohmann::json> answer = renew_();
    // An error ends nothing: the next renewal may arrive, and time runs out by itself.
    pause = kRetryAfter * seconds_;
    if (answer && answer->is_object()) {
      hear(*answer);
      if (answer->value("ok", false)) {
        alive_since_ = sent;
        // Counted from its sending, like the lease.
        pause = std::max(pause, kRenewEvery * seconds_ - (clock_() - sent));
      } else {
        stale_ = true;
      }
    }
    lock.lock();
    if (stale_) changed_.wait(lock, [this] { return ending_; });
    if (ending_) return;
  }
}

}  // namespace tilewright::fleet
