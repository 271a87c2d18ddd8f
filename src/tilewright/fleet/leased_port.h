// A job of a lease, as its server sees it: the agent's side of a JobPort.
#pragma once

#include <mutex>
#include <string>

#include "tilewright/fleet/blob_cache.h"
#include "tilewright/fleet/blobs.h"
#include "tilewright/fleet/client.h"
#include "tilewright/fleet/item_poster.h"
#include "tilewright/fleet/job_server.h"
#include "tilewright/fleet/lease_watch.h"

namespace tilewright::fleet {

/// What became of a job under one lease.
struct JobEnd {
  enum class Kind {
    Done,       ///< the store has all results, or why there are none
    Left,       ///< it was stopped: the rest runs elsewhere or later
    Stale,      ///< the lease was over, or the store refused what came
    Unanswered  ///< the store did not answer as long as the lease lasted
  } kind = Kind::Left;
  std::string text;  ///< for people: `ok`, `14 of 16 ok`, why it failed
};

class LeasedPort final : public JobPort {
 public:
  /// `leaving`: whether the agent has to end. All outlive it. For the thread that made it.
  LeasedPort(Client& client, BlobCache& cache, LeaseWatch& watch, LeaseKey key,
             const LeasedJob& job, std::function<bool()> leaving);

  Status append(const std::string& sha256, const std::string& path) override;
  Result<std::string> get(const std::string& sha256) override;
  Status put(const std::string& sha256, std::string_view bytes) override;
  void add(ItemResult result) override;
  bool stop() override;
  bool stop_between_items() override;

  /// Posts what is left; `served`: how its server ended. requires: called once, last.
  JobEnd finish(const Status& served);

 private:
  Result<nlohmann::json> post(int from, const nlohmann::json& results,
                              const std::optional<std::string>& failed);

  Client& client_;
  std::mutex calling_;  ///< the client
  BlobCache& cache_;
  LeaseWatch& watch_;
  const LeaseKey key_;
  const LeasedJob& job_;
  const std::function<bool()> leaving_;
  int added_ = 0;
  std::string outcome_;   ///< of the last item
  bool stopped_ = false;  ///< its server was told to end
  ItemPoster poster_;     ///< the last member: its thread uses the others
};

}  // namespace tilewright::fleet
