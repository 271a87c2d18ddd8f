#include "tilewright/records/grouped_adds.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tilewright/base/process.h"
#include "tilewright/base/stopwatch.h"

namespace tilewright::records {
namespace {

constexpr double kShare = 0.01, kLongest = 2;  ///< of the time; units: s
constexpr double kShareAway = 0.2;             ///< of the time, for attempts to reach a server
constexpr auto kPause = std::chrono::milliseconds(200);

bool is_away(const Status& status) {
  return !status && status.error().kind == ErrorKind::Unreachable;
}

}  // namespace

GroupedAdds::GroupedAdds(std::shared_ptr<Store> store, std::function<double()> seconds, Away away)
    : store_(std::move(store)), seconds_(std::move(seconds)), away_(std::move(away)) {
  if (!seconds_) seconds_ = [begin = SteadyClock::now()] { return seconds_since(begin); };
}

Status GroupedAdds::add(const std::vector<Record>& records) {
  waiting_.insert(waiting_.end(), records.begin(), records.end());
  return seconds_() < next_ ? Status() : settle();
}

Status GroupedAdds::settle() {
  Status done = commit(false);
  return is_away(done) ? Status() : done;
}

Status GroupedAdds::flush(double patience) {
  for (const double begin = seconds_();;) {
    Status done = commit(true);
    if (interrupt_requested) patience = std::min(patience, kPatienceInterrupted);
    if (!is_away(done) || seconds_() - begin >= patience) return done;
    std::this_thread::sleep_for(kPause);
  }
}

Status GroupedAdds::commit(bool waits) {
  if (waiting_.empty()) return {};
  const double begin = seconds_();
  const Result<int64_t> added = store_->add_all(waiting_);
  const double end = seconds_();
  if (added) {
    waiting_.clear();
    since_ = -1;
    next_ = end + std::min((end - begin) / kShare, kLongest);
    return {};
  }
  if (added.error().kind == ErrorKind::Unreachable) {
    if (since_ < 0) since_ = begin;
    next_ = end + std::max((end - begin) / kShareAway, kLongest);
    if (away_) away_(end - since_, added.error(), waits);
  }
  return tl::unexpected<Error>(added.error());
}

}  // namespace tilewright::records
