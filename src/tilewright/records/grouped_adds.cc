#include "tilewright/records/grouped_adds.h"

#include <algorithm>

#include "tilewright/base/stopwatch.h"

namespace tilewright::records {
namespace {

constexpr double kShare = 0.01, kLongest = 2;  ///< of the time; units: s

}  // namespace

GroupedAdds::GroupedAdds(std::shared_ptr<Store> store, std::function<double()> seconds)
    : store_(std::move(store)), seconds_(std::move(seconds)) {
  if (!seconds_) seconds_ = [begin = SteadyClock::now()] { return seconds_since(begin); };
}

Status GroupedAdds::add(const std::vector<Record>& records) {
  waiting_.insert(waiting_.end(), records.begin(), records.end());
  return seconds_() < next_ ? Status() : flush();
}

Status GroupedAdds::flush() {
  if (waiting_.empty()) return {};
  const double begin = seconds_();
  TW_TRY(store_->add_all(waiting_));
  waiting_.clear();
  const double end = seconds_();
  next_ = end + std::min((end - begin) / kShare, kLongest);
  return {};
}

}  // namespace tilewright::records
