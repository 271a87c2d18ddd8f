#include "tilewright/fleet/item_poster.h"

#include <chrono>
#include <utility>

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

/// Seconds between posts, and between questions that bring no results.
constexpr double kPostEvery = .5, kAskEvery = .7;

SteadyClock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

ItemPoster::ItemPoster(int next, Post post)
    : post_(std::move(post)), next_(next), thread_([this] { loop(); }) {}

ItemPoster::~ItemPoster() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ItemPoster::add(ItemResult result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (result.item < next_) return;
  waiting_.emplace(result.item, std::move(result));
  changed_.notify_all();
}

void ItemPoster::keep_asking() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!std::exchange(asking_, true)) changed_.notify_all();
}

bool ItemPoster::over() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return over_;
}

int ItemPoster::next() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_;
}

int ItemPoster::good() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return good_;
}

/// The lock is open while the store answers.
Result<Json> ItemPoster::post_some(std::unique_lock<std::mutex>& lock,
                                   const std::optional<std::string>& failed) {
  Json results = Json::array();
  int upto = next_, good = 0;
  for (auto at = waiting_.begin(); at != waiting_.end() && at->first == upto; ++at, ++upto) {
    results.push_back(to_json(at->second));
    good += at->second.outcome == "ok" ? 1 : 0;
  }
  const int from = next_;
  lock.unlock();
  Result<Json> answer = post_(from, results, failed);
  lock.lock();
  last_ = SteadyClock::now();
  if (answer) {
    waiting_.erase(waiting_.begin(), waiting_.lower_bound(upto));
    next_ = upto;
    good_ += good;
    over_ |= !answer->is_object() || answer->value("answer", "stale") == "stale";
    answer_ = answer;
  } else if (answer.error().kind != ErrorKind::Unreachable) {
    over_ = true;
    answer_ = answer;
  }
  return answer;
}

void ItemPoster::loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    const bool something = ready();
    if (over_ || (!something && !asking_)) {
      changed_.wait(lock);
      continue;
    }
    const auto due = last_ + duration_of(something ? kPostEvery : kAskEvery);
    if (SteadyClock::now() < due) {
      changed_.wait_until(lock, due);
      continue;
    }
    (void)post_some(lock, std::nullopt);
  }
}

Result<Json> ItemPoster::finish(const std::optional<std::string>& failed,
                                const std::function<bool()>& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  lock.unlock();
  thread_.join();  // a post may be under way
  lock.lock();
  constexpr std::chrono::milliseconds kPause{200};
  while (!over_ && (ready() || failed)) {
    Result<Json> answer = post_some(lock, failed);
    if (answer || answer.error().kind != ErrorKind::Unreachable) return answer;
    if (stop()) return answer;
    std::this_thread::sleep_for(kPause);
    if (stop()) return answer;
  }
  return answer_;
}

}  // namespace tilewright::fleet
