// Tuning records: one row per measurement in one SQLite file; each replays to the same code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/fields.h"
#include "tilewright/base/result.h"

namespace tilewright::records {

/// One candidate and what became of it.
struct Record {
  std::string workload;  ///< `sha256:` of the printed Func at stage Tensor, its name set to `f`
  std::string name;      ///< for people: `conv_blocked_relu`
  std::string target;    ///< `cpu:znver4@1a2b3c4d:2`: kind, processor, machine, workers
  std::string compiler;  ///< version of Tilewright and of the back-end
  std::string point;     ///< decisions in the space, for people
  std::string schedule;  ///< printed trace
  /// ok, invalid, compile_error, wrong_result, timeout, crash, oom or lost.
  std::string outcome;
  std::string reason;            ///< of anything but ok
  double cost = 0;               ///< of ok; units: ns, or cycles of a simulator; the median
  double least = 0, spread = 0;  ///< fastest reading; middle half of the readings / median
  int64_t readings = 0;
  std::string searcher;  ///< also `rule`: without tuning; `race`: the winner of a final race
  int64_t seed = 0;
  std::string when;  ///< UTC, ISO 8601

  static constexpr auto fields() {
    return std::tuple{field("workload", &Record::workload), field("name", &Record::name),
                      field("target", &Record::target),     field("compiler", &Record::compiler),
                      field("point", &Record::point),       field("schedule", &Record::schedule),
                      field("outcome", &Record::outcome),   field("reason", &Record::reason),
                      field("cost", &Record::cost),         field("least", &Record::least),
                      field("spread", &Record::spread),     field("readings", &Record::readings),
                      field("searcher", &Record::searcher), field("seed", &Record::seed),
                      field("when", &Record::when)};
  }
  friend bool operator==(const Record&, const Record&) = default;
};

/// Which records to look at; empty fields match all.
struct RecordFilter {
  std::string workload, target, compiler;
  bool ok_only = false;
  std::string searcher;
};

/// A store. Each `add` is durable when it returns: a killed process loses nothing it added.
class RecordStore {
 public:
  /// Opens or makes the file. errors: Io; Package for a file of another schema, with both versions.
  static Result<RecordStore> open(const std::string& path);
  /// The same for who only reads: a store that somebody else owns will do. errors: Io, Package.
  static Result<RecordStore> open_to_read(const std::string& path);
  /// `TILEWRIGHT_RECORDS`, else tilewright/records.sqlite in the user's data folder.
  static std::string default_path();

  Status add(const Record& record);
  /// All in one transaction. `funcs`: texts of workloads, by key.
  Status add_all(const std::vector<Record>& records);
  /// The Func behind a workload key, needed to replay its records without the model.
  Status add_workload(const std::string& key, const std::string& func);
  Result<std::string> workload(const std::string& key) const;

  Status each_workload(
      const std::function<void(const std::string& key, const std::string& func)>& visit) const;

  /// Calls `visit` for each record, oldest first.
  Status each(const RecordFilter& filter, const std::function<void(const Record&)>& visit) const;
  Result<std::vector<Record>> find(const RecordFilter& filter) const;
  /// The cheapest valid record.
  Result<std::optional<Record>> best(const RecordFilter& filter) const;
  /// What to compile a workload with: the winner of the last final race (searcher `race`); without
  /// one, the cheapest valid record if it beats the rules' schedule (searcher `rule`) clearly.
  Result<std::optional<Record>> chosen(const RecordFilter& filter) const;
  Result<int64_t> count(const RecordFilter& filter) const;

  /// Keeps per workload and target the `keep` cheapest valid records, and those that `chosen` looks
  /// at; the number removed.
  Result<int64_t> prune(int keep);

  /// JSON lines: a header with the schema version, workloads, records.
  Result<std::string> export_lines(const RecordFilter& filter) const;
  /// Records that are here already are skipped. Lines that cannot be read are counted, never fatal.
  struct Imported {
    int64_t added = 0, known = 0, broken = 0;
    std::string first_problem;
  };
  Result<Imported> import_lines(const std::string& text);
  /// The same with the records of another store. errors: Io, Package.
  Result<Imported> merge(const RecordStore& other);

 private:
  struct Database;
  Result<std::optional<Record>> first(const RecordFilter& filter, const std::string& order) const;
  explicit RecordStore(std::shared_ptr<Database> database) : database_(std::move(database)) {}
  std::shared_ptr<Database> database_;
};

/// Lines of the exchange format: the first one, a workload, a record.
std::string lines_header();
std::string workload_line(const std::string& key, const std::string& func);
std::string line_of(const Record& record);

/// Key of a workload: equal programs, names apart, have equal keys.
std::string workload_key(const std::string& printed_func);

}  // namespace tilewright::records
