// A store of tuning records, whatever keeps them: `sqlite/sqlite.h` opens one that is a file.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/records/record.h"

namespace tilewright::records {

/// Which records to look at; empty fields match all.
struct RecordFilter {
  std::string workload, target, compiler;
  bool ok_only = false;
  std::string kind = {};
};

/// Texts of workloads, by key.
using Workloads = std::map<std::string, std::string>;

/// Records and the programs they are about, for one thread at a time. What was added stays in the
/// order in which it was added. `testing/store_suite.h` tests every form of it.
class Store {
 public:
  virtual ~Store() = default;

  /// All of it or, on an error, nothing; durable when it returns: neither a killed process nor a
  /// loss of power takes it away. Records and workloads that are here already are skipped: the same
  /// measurement has the same fields. The number of records added. errors: Io.
  virtual Result<int64_t> add_all(const std::vector<Record>& records,
                                  const Workloads& workloads = {}) = 0;
  /// The same of one. Each waits for the disk: many together are faster.
  Status add(const Record& record);
  /// The Func behind a workload key, needed to replay its records without the model.
  Status add_workload(const std::string& key, const std::string& func);

  /// errors: Package (there is none), Io.
  virtual Result<std::string> workload(const std::string& key) const = 0;
  /// In the order of the keys.
  virtual Status each_workload(
      const std::function<void(const std::string& key, const std::string& func)>& visit) const = 0;

  /// Calls `visit` for each record, oldest first.
  virtual Status each(const RecordFilter& filter,
                      const std::function<void(const Record&)>& visit) const = 0;
  Result<std::vector<Record>> find(const RecordFilter& filter) const;
  virtual Result<int64_t> count(const RecordFilter& filter) const = 0;
  /// The cheapest valid record; the valid one that was added last.
  virtual Result<std::optional<Record>> best(const RecordFilter& filter) const = 0;
  virtual Result<std::optional<Record>> last(const RecordFilter& filter) const = 0;
  /// What to compile a workload with: the last decision (kinds `race`, `algorithm`); without one,
  /// the cheapest valid record if it beats the rules' schedule clearly. The same in every store.
  Result<std::optional<Record>> chosen(const RecordFilter& filter) const;

  /// Keeps per workload and target the `keep` cheapest valid records, and those that `chosen` looks
  /// at; the number removed.
  virtual Result<int64_t> prune(int keep) = 0;
};

}  // namespace tilewright::records
