// Adding records as they come, without waiting for the disk all the time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tilewright/records/store.h"

namespace tilewright::records {

/// Adds to a store at once where additions are rare, else several together: waiting for the store
/// takes about 1 % of the time. What a killed process loses is what was handed in within the last
/// two seconds, or since, if nothing has come after it.
class GroupedAdds {
 public:
  /// `seconds`: a clock; empty: the steady one.
  explicit GroupedAdds(std::shared_ptr<Store> store, std::function<double()> seconds = {});
  /// Adds what still waits; an error is lost.
  ~GroupedAdds() { (void)flush(); }
  GroupedAdds(const GroupedAdds&) = delete;
  GroupedAdds& operator=(const GroupedAdds&) = delete;

  /// errors: of the store.
  Status add(const std::vector<Record>& records);
  /// Adds what waits.
  Status flush();

 private:
  std::shared_ptr<Store> store_;
  std::function<double()> seconds_;
  std::vector<Record> waiting_;
  double next_ = 0;  ///< when the store may be asked again
};

}  // namespace tilewright::records
