#include "tilewright/records/sqlite/sqlite.h"

#include <fmt/format.h>

#include <cstdlib>

#include "tilewright/base/environment.h"
#include "tilewright/records/sqlite/database.h"

namespace tilewright::records {
namespace {

std::string condition(const RecordFilter& filter) {
  std::string text = " WHERE 1";
  if (!filter.workload.empty()) text += " AND workload = ?";
  if (!filter.target.empty()) text += " AND target = ?";
  if (!filter.compiler.empty()) text += " AND compiler = ?";
  if (!filter.kind.empty()) text += " AND kind = ?";
  if (filter.ok_only) text += " AND outcome = 'ok'";
  return text;
}

void bind(Query& query, const RecordFilter& filter) {
  for (const std::string* value :
       {&filter.workload, &filter.target, &filter.compiler, &filter.kind})
    if (!value->empty()) query.bind(*value);
}

std::string insert_sql() {
  std::string marks;
  Record record;
  for_each_field(record, [&](std::string_view, auto&) { marks += marks.empty() ? "?" : ", ?"; });
  return fmt::format("INSERT OR IGNORE INTO records ({}) VALUES ({})", record_columns(), marks);
}

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::shared_ptr<Database> database)
      : database_(std::move(database)), db_(database_->handle) {}

  Result<int64_t> add_all(const std::vector<Record>& records, const Workloads& workloads) override;
  Result<std::string> workload(const std::string& key) const override;
  Status each_workload(const std::function<void(const std::string& key, const std::string& func)>&
                           visit) const override;
  Status each(const RecordFilter& filter,
              const std::function<void(const Record&)>& visit) const override;
  Result<int64_t> count(const RecordFilter& filter) const override;
  Result<std::optional<Record>> best(const RecordFilter& filter) const override {
    return first(filter, "cost");
  }
  Result<std::optional<Record>> last(const RecordFilter& filter) const override {
    return first(filter, "rowid DESC");
  }
  Result<int64_t> prune(int keep) override;

 private:
  Result<std::optional<Record>> first(const RecordFilter& filter, const std::string& order) const;

  std::shared_ptr<Database> database_;
  sqlite3* db_;
};

Result<int64_t> SqliteStore::add_all(const std::vector<Record>& records,
                                     const Workloads& workloads) {
  const auto transaction = TW_TRY(Transaction::begin(db_));
  Query workload(db_, "INSERT OR IGNORE INTO workloads VALUES (?, ?)");
  for (const auto& [key, func] : workloads) {
    workload.bind(key);
    workload.bind(func);
    TW_TRY_STATUS(workload.run());
    workload.reset();
  }
  const int before = sqlite3_total_changes(db_);
  Query row(db_, insert_sql());
  for (const Record& record : records) {
    row.bind(record);
    TW_TRY_STATUS(row.run());
    row.reset();
  }
  const int added = sqlite3_total_changes(db_) - before;
  TW_TRY_STATUS(transaction->commit());
  return added;
}

Result<std::string> SqliteStore::workload(const std::string& key) const {
  Query query(db_, "SELECT func FROM workloads WHERE key = ?");
  query.bind(key);
  if (!TW_TRY(query.step()))
    return fail(ErrorKind::Package, fmt::format("the store has no workload {}", key),
                "its records cannot be replayed without the model");
  std::string text;
  query.read(text);
  return text;
}

Status SqliteStore::each_workload(
    const std::function<void(const std::string& key, const std::string& func)>& visit) const {
  Query query(db_, "SELECT key, func FROM workloads ORDER BY key");
  while (TW_TRY(query.step())) {
    std::string key, func;
    query.read(key);
    query.read(func);
    visit(key, func);
  }
  return {};
}

Status SqliteStore::each(const RecordFilter& filter,
                         const std::function<void(const Record&)>& visit) const {
  Query query(db_, fmt::format("SELECT {} FROM records{} ORDER BY rowid", record_columns(),
                               condition(filter)));
  bind(query, filter);
  while (TW_TRY(query.step())) {
    Record record;
    query.read(record);
    visit(record);
  }
  return {};
}

Result<std::optional<Record>> SqliteStore::first(const RecordFilter& filter,
                                                 const std::string& order) const {
  RecordFilter valid = filter;
  valid.ok_only = true;
  Query query(db_, fmt::format("SELECT {} FROM records{} ORDER BY {} LIMIT 1", record_columns(),
                               condition(valid), order));
  bind(query, valid);
  if (!TW_TRY(query.step())) return std::optional<Record>();
  Record record;
  query.read(record);
  return std::optional<Record>(std::move(record));
}

Result<int64_t> SqliteStore::count(const RecordFilter& filter) const {
  Query query(db_, "SELECT count(*) FROM records" + condition(filter));
  bind(query, filter);
  TW_TRY(query.step());
  int64_t rows = 0;
  query.read(rows);
  return rows;
}

Result<int64_t> SqliteStore::prune(int keep) {
  const std::string decisions = fmt::format(
      "SELECT max(rowid) FROM records WHERE outcome = 'ok' AND kind IN ('{}', '{}', '{}') GROUP BY "
      "workload, target, compiler, kind",
      kRuleKind, kRaceKind, kAlgorithmKind);
  Query query(db_,
              "DELETE FROM records WHERE rowid NOT IN (SELECT rowid FROM (SELECT rowid, "
              "row_number() OVER (PARTITION BY workload, target ORDER BY cost) AS place FROM "
              "records WHERE outcome = 'ok') WHERE place <= ?) AND rowid NOT IN (" +
                  decisions + ")");
  query.bind(static_cast<int64_t>(keep));
  TW_TRY_STATUS(query.run());
  return sqlite3_changes(db_);
}

}  // namespace

std::string default_store_path() {
  if (const auto set = environment("TILEWRIGHT_RECORDS")) return *set;
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = data != nullptr && *data != 0 ? std::string(data)
                             : home != nullptr             ? std::string(home) + "/.local/share"
                                                           : ".";
  return folder + "/tilewright/records.sqlite";
}

Result<std::shared_ptr<Store>> open_store(const std::string& path) {
  auto database = TW_TRY(Database::open(path));
  return std::shared_ptr<Store>(std::make_shared<SqliteStore>(std::move(database)));
}

Result<std::shared_ptr<Store>> open_store_to_read(const std::string& path) {
  auto database = TW_TRY(Database::open_to_read(path));
  return std::shared_ptr<Store>(std::make_shared<SqliteStore>(std::move(database)));
}

}  // namespace tilewright::records
