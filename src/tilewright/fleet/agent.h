// The agent of a worker: it offers devices to the fleet, and does what is asked of them.
//
// A thread per device goes round: claim a lease, do its jobs one after the other, post what became
// of them, claim again. While the store is away, what runs goes on as long as its lease lasts;
// everybody connects again by himself. An agent that is told to leave gives back what it holds.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tilewright/base/process.h"
#include "tilewright/fleet/blob_cache.h"
#include "tilewright/fleet/client.h"
#include "tilewright/fleet/jobs.h"
#include "tilewright/fleet/lease_watch.h"

namespace tilewright::fleet {

struct AgentOptions {
  std::string url;
  std::string pool = "default";
  std::string host, program, compiler, sandbox;  ///< as they are shown
  std::vector<Offer> offers;
  std::string cache_folder;
  int64_t cache_bytes = int64_t{10} << 30;
  double idle_exit_s = 0;  ///< leaves after so long without work; 0: never
  double max_time_s = 0;   ///< leaves after so long, between jobs; 0: never
  /// Runs the child of a job on a folder: to its end, its limit, or until `stop` is true.
  std::function<Result<ToolResult>(const Offer& offer, const std::string& folder, double limit_s,
                                   const std::function<bool()>& stop)>
      child;
  std::function<void(const std::string& line)> say;  ///< one line for people
  const std::atomic<bool>* leave = nullptr;          ///< set by a signal
};

/// What an agent did.
struct AgentCounts {
  std::atomic<int64_t> done = 0, stale = 0, failed = 0;
};

/// Runs until it is told to leave, or has been idle or at work for as long as it may.
/// errors: those of enrolling; what goes wrong later is said, and tried again.
Result<void> run_agent(const AgentOptions& options, AgentCounts& counts);

}  // namespace tilewright::fleet
