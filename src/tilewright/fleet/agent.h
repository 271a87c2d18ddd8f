// The agent of a worker: it offers devices to the fleet, and does what is asked of them.
//
// A thread per device goes round: claim a lease, do its jobs one after the other, post what became
// of them, claim again. What a job is, only the server of its kind knows (job_server.h). While the
// store is away, what runs goes on as long as its lease lasts; everybody connects again by himself.
// An agent that is told to leave posts what it has and gives back what it holds.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/fleet/blob_cache.h"
#include "tilewright/fleet/client.h"
#include "tilewright/fleet/job_server.h"
#include "tilewright/fleet/lease_watch.h"

namespace tilewright::fleet {

/// Jobs of some kinds, and who does them.
struct Service {
  std::vector<std::string> kinds;
  /// Makes who does them on a device, in the device's thread, when the first such job comes. Null:
  /// the device does none.
  std::function<std::unique_ptr<JobServer>(const Offer& offer)> make;
};

struct AgentOptions {
  std::string url;
  std::string pool = "default";
  std::string host, program, compiler, sandbox;  ///< as they are shown
  std::vector<Offer> offers;
  std::string cache_folder;
  int64_t cache_bytes = int64_t{10} << 30;
  double idle_exit_s = 0;  ///< leaves after so long without work; 0: never
  double max_time_s = 0;   ///< leaves after so long, between jobs; 0: never
  std::vector<Service> services;
  /// Keeps commands of this machine's user off a device while it is at work: held for each lease.
  /// Null: they use it now, so nothing is claimed. May be empty.
  std::function<std::shared_ptr<void>(const Offer& offer)> hold;
  /// Why this worker can do no jobs any more: asked before each claim, and it leaves then. Empty:
  /// it can. May be absent.
  std::function<std::string()> unfit;
  int most_jobs = 1;  ///< of a lease; more leave less for devices that are idle
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
