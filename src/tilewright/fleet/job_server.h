// What does the jobs of some kinds, and what an agent lends to it.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/fleet/jobs.h"

namespace tilewright::fleet {

/// One leased job, as whoever does it sees it.
class JobPort {
 public:
  virtual ~JobPort() = default;
  /// Puts bytes that the job names, by their hash, at the end of a file, which may not be there
  /// yet. errors: those of the store; Io.
  virtual Status append(const std::string& sha256, const std::string& path) = 0;
  /// The same bytes, in memory.
  virtual Result<std::string> get(const std::string& sha256) = 0;
  /// Sends bytes back to the submitter. errors: those of the store.
  virtual Status put(const std::string& sha256, std::string_view bytes) = 0;
  /// What became of an item. Items may come in any order; what follows the last one that was posted
  /// is posted soon, so that it stays whatever happens to this worker.
  virtual void add(ItemResult result) = 0;
  /// Whether the job has to end at once: its lease is lost, its run cancelled, the worker leaves.
  virtual bool stop() = 0;
  /// The same, or something more urgent waits: for jobs that lose nothing by it, since the rest of
  /// their items runs elsewhere or later. Whoever asks this has results coming: the store is asked
  /// about twice a second whether the job is still wanted.
  virtual bool stop_between_items() = 0;
};

/// Does jobs on one device, in one thread, one after the other. What it has loaded stays meanwhile.
class JobServer {
 public:
  virtual ~JobServer() = default;
  /// Adds a result for every item from `job.next` on, unless it is stopped.
  /// errors: the job ends as failed for that reason; what was added stays.
  virtual Status serve(const LeasedJob& job, JobPort& port) = 0;
  /// Keys of jobs that it could begin with at once.
  virtual std::vector<std::string> warm() const { return {}; }
  /// Nothing was asked of it for so long.
  virtual void idle(double /*seconds*/) {}
};

}  // namespace tilewright::fleet
