// Keeps a lease alive while a job runs, and knows when it is lost.
//
// A thread of its own renews every third of the lease's time, and ten times as often while that
// fails. What counts as the lease's life is measured here from the *sending* of the last renewal
// that was granted, by a clock that goes on while the machine sleeps: so the worker stops using the
// device before the server gives it away, whatever happened to the replies. Example of a lease of
// 30 s: sent at 0, 10 and 20; from 30 on nothing is granted, asked once a second; at 20 + 24 = 44
// the child is ended; the server gives the device away at 50.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tilewright/fleet/client.h"
#include "tilewright/fleet/jobs.h"

namespace tilewright::fleet {

/// Seconds since the machine started, sleep counted.
double boot_seconds();

class LeaseWatch {
 public:
  /// Asks the store to renew: ok, stale or an error. For tests the store may be a function.
  using Renew = std::function<Result<nlohmann::json>()>;

  /// `sent`: what the clock said before the claim was sent. `seconds`: what the lease lasts.
  LeaseWatch(Renew renew, double sent, double seconds,
             std::function<double()> clock = boot_seconds);
  ~LeaseWatch();
  LeaseWatch(const LeaseWatch&) = delete;
  LeaseWatch& operator=(const LeaseWatch&) = delete;

  /// Whether the device may be somebody else's: nothing more may run or be posted under the lease.
  bool lost() const;
  bool cancelled(const std::string& job) const;
  /// What was said with the last renewal or post: leave, or give back what has not begun.
  bool drain() const { return drain_; }
  bool yield() const { return yield_; }
  /// Looks at `cancel`, `drain` and `yield` of an answer of renew or post.
  void hear(const nlohmann::json& answer);

 private:
  void loop();

  Renew renew_;
  const double seconds_;
  const std::function<double()> clock_;
  std::atomic<double> alive_since_;
  std::atomic<bool> stale_ = false, drain_ = false, yield_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::set<std::string> cancelled_;
  std::thread thread_;
};

}  // namespace tilewright::fleet
