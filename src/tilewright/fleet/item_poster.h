// Posts the results of one job as they come, by a thread of its own: work never waits for the
// store.
//
// Results are added in any order; what follows the last posted item goes out in groups, one post
// per half a second at most. Example: items 0, 2, 1 are added within that time: one post of three.
// While the store does not answer, results wait here.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "tilewright/base/result.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/jobs.h"

namespace tilewright::fleet {

class ItemPoster {
 public:
  /// Posts `results` from item `from` on; `failed`: why the job ends after them. Called by one
  /// thread at a time.
  using Post = std::function<Result<nlohmann::json>(int from, const nlohmann::json& results,
                                                    const std::optional<std::string>& failed)>;

  /// `next`: the first item that is not posted.
  ItemPoster(int next, Post post);
  ~ItemPoster();
  ItemPoster(const ItemPoster&) = delete;
  ItemPoster& operator=(const ItemPoster&) = delete;

  void add(ItemResult result);
  /// From now on the store is asked even if there is nothing to post: it answers whether the job is
  /// still wanted.
  void keep_asking();
  /// Whether the store has refused a post, or called it stale: nothing more is wanted.
  bool over() const;
  /// Posts what is left, with `failed`; tries again until `stop` is true. The store's answer to the
  /// last post; null if there was nothing to post. errors: those of the store.
  Result<nlohmann::json> finish(const std::optional<std::string>& failed,
                                const std::function<bool()>& stop);
  /// The first item that is not posted, and how many of those before came through here as `ok`.
  int next() const;
  int good() const;

 private:
  void loop();
  Result<nlohmann::json> post_some(std::unique_lock<std::mutex>& lock,
                                   const std::optional<std::string>& failed);
  bool ready() const { return !waiting_.empty() && waiting_.begin()->first == next_; }

  const Post post_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, ItemResult> waiting_;
  int next_, good_ = 0;
  SteadyClock::time_point last_ = SteadyClock::now();  ///< post
  bool asking_ = false, over_ = false, ending_ = false;
  Result<nlohmann::json> answer_ = nlohmann::json();
  std::thread thread_;
};

}  // namespace tilewright::fleet
