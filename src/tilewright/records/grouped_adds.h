// Adding records as they come, without waiting for the disk, or for a server that is away, all the
// time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tilewright/records/store.h"

namespace tilewright::records {

/// Adds to a store at once where additions are rare, else several together: waiting for the store
/// takes about 1 % of the time. What a killed process loses is what was handed in within the last
/// two seconds, or since, if nothing has come after it.
///
/// While a server does not answer, records wait here: `add` and `settle` go on, and only `flush`
/// waits for it.
class GroupedAdds {
 public:
  /// Told each time that a server did not answer: for how long by now (units: s), why, and whether
  /// it is waited for.
  using Away = std::function<void(double seconds, const Error& error, bool waits)>;
  /// How long `flush` waits. units: s
  static constexpr double kPatience = 600, kPatienceInterrupted = 5;

  /// `seconds`: a clock; empty: the steady one.
  explicit GroupedAdds(std::shared_ptr<Store> store, std::function<double()> seconds = {},
                       Away away = {});
  /// Adds what still waits; an error is lost.
  ~GroupedAdds() { (void)commit(false); }
  GroupedAdds(const GroupedAdds&) = delete;
  GroupedAdds& operator=(const GroupedAdds&) = delete;

  /// errors: of the store, but for Unreachable.
  Status add(const std::vector<Record>& records);
  /// Adds what waits, if a server answers now. errors: as of `add`.
  Status settle();
  /// Adds what waits. Waits up to `patience` for a server that does not answer; after Ctrl-C, no
  /// longer than kPatienceInterrupted. errors: of the store.
  Status flush(double patience = kPatience);

 private:
  Status commit(bool waits);

  std::shared_ptr<Store> store_;
  std::function<double()> seconds_;
  Away away_;
  std::vector<Record> waiting_;
  double next_ = 0;    ///< when the store may be asked again
  double since_ = -1;  ///< when a server did not answer first; -1: it does
};

}  // namespace tilewright::records
