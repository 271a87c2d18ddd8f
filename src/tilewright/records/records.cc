#include "tilewright/records/records.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tilewright/base/environment.h"
#include "tilewright/base/file.h"

namespace tilewright::records {
namespace {

constexpr int kSchema = 1;

/// A prepared statement: values bound in order, rows read in order.
class Query {
 public:
  Query(sqlite3* db, const std::string& sql) : db_(db) {
    ok_ = sqlite3_prepare_v2(db, sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK;
  }
  ~Query() { sqlite3_finalize(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  void bind(const std::string& value) {
    sqlite3_bind_text(statement_, ++bound_, value.data(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
  }
  void bind(double value) { sqlite3_bind_double(statement_, ++bound_, value); }
  void bind(int64_t value) { sqlite3_bind_int64(statement_, ++bound_, value); }

  void read(std::string& value) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
    const int bytes = sqlite3_column_bytes(statement_, column_++);
    value.assign(text == nullptr ? "" : text, static_cast<size_t>(bytes));
  }
  void read(double& value) { value = sqlite3_column_double(statement_, column_++); }
  void read(int64_t& value) { value = sqlite3_column_int64(statement_, column_++); }

  /// True if there is a row; false at the end. errors: Io.
  Result<bool> step() {
    column_ = 0;
    const int code = ok_ ? sqlite3_step(statement_) : SQLITE_ERROR;
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return fail(ErrorKind::Io, "the record store refused a statement", sqlite3_errmsg(db_));
  }
  Status run() {
    TW_TRY(step());
    return {};
  }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  bool ok_ = false;
  int bound_ = 0, column_ = 0;
};

Status execute(sqlite3* db, const std::string& sql) { return Query(db, sql).run(); }

Result<int64_t> schema_version(sqlite3* db) {
  Query query(db, "PRAGMA user_version");
  TW_TRY(query.step());
  int64_t version = 0;
  query.read(version);
  return version;
}

/// `a, b, c` of the fields of a record.
std::string columns() {
  std::string names;
  Record record;
  for_each_field(record, [&](std::string_view name, auto&) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
  });
  return names;
}

std::string question_marks() {
  std::string marks;
  Record record;
  for_each_field(record, [&](std::string_view, auto&) { marks += marks.empty() ? "?" : ", ?"; });
  return marks;
}

std::string table_columns() {
  std::string text;
  Record record;
  for_each_field(record, [&](std::string_view name, auto& value) {
    using T = std::decay_t<decltype(value)>;
    const char* type = std::is_same_v<T, std::string> ? "TEXT"
                       : std::is_same_v<T, double>    ? "REAL"
                                                      : "INTEGER";
    text += fmt::format("\"{}\" {} NOT NULL, ", name, type);
  });
  return text;
}

std::string condition(const RecordFilter& filter) {
  std::string text = " WHERE 1";
  if (!filter.workload.empty()) text += " AND workload = ?";
  if (!filter.target.empty()) text += " AND target = ?";
  if (!filter.compiler.empty()) text += " AND compiler = ?";
  if (!filter.searcher.empty()) text += " AND searcher = ?";
  if (filter.ok_only) text += " AND outcome = 'ok'";
  return text;
}

void bind(Query& query, const RecordFilter& filter) {
  for (const std::string* value :
       {&filter.workload, &filter.target, &filter.compiler, &filter.searcher})
    if (!value->empty()) query.bind(*value);
}

void bind(Query& query, const Record& record) {
  for_each_field(record, [&](std::string_view, const auto& value) { query.bind(value); });
}

Record read(Query& query) {
  Record record;
  for_each_field(record, [&](std::string_view, auto& value) { query.read(value); });
  return record;
}

/// The same measurement under two imports: everything but the time of writing.
std::string insert_sql() {
  return fmt::format("INSERT OR IGNORE INTO records ({}) VALUES ({})", columns(), question_marks());
}

}  // namespace

struct RecordStore::Database {
  sqlite3* handle = nullptr;
  ~Database() { sqlite3_close(handle); }

  /// The version that the file has. errors: Io, Package (another one).
  Result<int64_t> checked_version(const std::string& path) {
    sqlite3_busy_timeout(handle, 10000);
    const int64_t found = TW_TRY(schema_version(handle));
    if (found != 0 && found != kSchema)
      return fail(ErrorKind::Package, fmt::format("{} is of another schema", path),
                  fmt::format("version {}, this program writes {}", found, kSchema),
                  "tilewright records export with the program that wrote it");
    return found;
  }

  Status set_up(const std::string& path) {
    const int64_t found = TW_TRY(checked_version(path));
    TW_TRY_STATUS(execute(handle, "PRAGMA journal_mode = WAL"));
    TW_TRY_STATUS(execute(handle, "PRAGMA synchronous = NORMAL"));
    if (found == kSchema) return {};
    for (const std::string& sql :
         {fmt::format("CREATE TABLE IF NOT EXISTS records ({} UNIQUE (workload, target, compiler, "
                      "schedule, point, searcher, \"when\", cost))",
                      table_columns()),
          std::string("CREATE INDEX IF NOT EXISTS by_cost ON records (workload, target, outcome, "
                      "cost)"),
          std::string("CREATE TABLE IF NOT EXISTS workloads (key TEXT PRIMARY KEY, func TEXT)"),
          fmt::format("PRAGMA user_version = {}", kSchema)})
      TW_TRY_STATUS(execute(handle, sql));
    return {};
  }
};

std::string RecordStore::default_path() {
  if (const auto set = environment("TILEWRIGHT_RECORDS")) return *set;
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = data != nullptr && *data != 0 ? std::string(data)
                             : home != nullptr             ? std::string(home) + "/.local/share"
                                                           : ".";
  return folder + "/tilewright/records.sqlite";
}

Result<RecordStore> RecordStore::open(const std::string& path) {
  std::error_code ignored;  // a folder that cannot be made shows when the file is opened
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  auto database = std::make_shared<Database>();
  if (sqlite3_open(path.c_str(), &database->handle) != SQLITE_OK)
    return fail(ErrorKind::Io, fmt::format("cannot open the record store {}", path),
                sqlite3_errmsg(database->handle), "set TILEWRIGHT_RECORDS to another file");
  if (Status ready = database->set_up(path); !ready)
    return tl::unexpected<Error>(std::move(ready.error()).at(path));
  return RecordStore(std::move(database));
}

Result<RecordStore> RecordStore::open_to_read(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool ours = ::access(path.c_str(), W_OK) == 0 &&
                    ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
  if (ours || !std::filesystem::exists(path, ignored)) return open(path);
  // Readers of a store write beside it, too, unless nobody is said to change it.
  std::string name;
  for (const char c : std::filesystem::absolute(path, ignored).string())
    name += c == '%' ? "%25" : c == '?' ? "%3f" : c == '#' ? "%23" : std::string(1, c);
  auto database = std::make_shared<Database>();
  if (sqlite3_open_v2(fmt::format("file:{}?immutable=1", name).c_str(), &database->handle,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr) != SQLITE_OK)
    return fail(ErrorKind::Io, fmt::format("cannot open the record store {}", path),
                sqlite3_errmsg(database->handle), "set TILEWRIGHT_RECORDS to another file");
  if (const Result<int64_t> found = database->checked_version(path); !found)
    return tl::unexpected<Error>(Error(found.error()).at(path));
  return RecordStore(std::move(database));
}

Status RecordStore::add(const Record& record) {
  Query query(database_->handle, insert_sql());
  bind(query, record);
  return query.run();
}

Status RecordStore::add_all(const std::vector<Record>& records) {
  TW_TRY_STATUS(execute(database_->handle, "BEGIN IMMEDIATE"));
  for (const Record& record : records)
    if (Status added = add(record); !added) {
      (void)execute(database_->handle, "ROLLBACK");
      return added;
    }
  return execute(database_->handle, "COMMIT");
}

Status RecordStore::add_workload(const std::string& key, const std::string& func) {
  Query query(database_->handle, "INSERT OR IGNORE INTO workloads VALUES (?, ?)");
  query.bind(key);
  query.bind(func);
  return query.run();
}

Result<std::string> RecordStore::workload(const std::string& key) const {
  Query query(database_->handle, "SELECT func FROM workloads WHERE key = ?");
  query.bind(key);
  if (!TW_TRY(query.step()))
    return fail(ErrorKind::Package, fmt::format("the store has no workload {}", key),
                "its records cannot be replayed without the model");
  std::string text;
  query.read(text);
  return text;
}

Status RecordStore::each_workload(
    const std::function<void(const std::string& key, const std::string& func)>& visit) const {
  Query query(database_->handle, "SELECT key, func FROM workloads ORDER BY key");
  while (TW_TRY(query.step())) {
    std::string key, func;
    query.read(key);
    query.read(func);
    visit(key, func);
  }
  return {};
}

Status RecordStore::each(const RecordFilter& filter,
                         const std::function<void(const Record&)>& visit) const {
  Query query(database_->handle,
              fmt::format("SELECT {} FROM records{} ORDER BY rowid", columns(), condition(filter)));
  bind(query, filter);
  while (TW_TRY(query.step())) visit(read(query));
  return {};
}

Result<std::vector<Record>> RecordStore::find(const RecordFilter& filter) const {
  std::vector<Record> found;
  TW_TRY_STATUS(each(filter, [&](const Record& record) { found.push_back(record); }));
  return found;
}

Result<std::optional<Record>> RecordStore::first(const RecordFilter& filter,
                                                 const std::string& order) const {
  RecordFilter valid = filter;
  valid.ok_only = true;
  Query query(database_->handle, fmt::format("SELECT {} FROM records{} ORDER BY {} LIMIT 1",
                                             columns(), condition(valid), order));
  bind(query, valid);
  if (!TW_TRY(query.step())) return std::optional<Record>();
  return std::optional<Record>(read(query));
}

Result<std::optional<Record>> RecordStore::best(const RecordFilter& filter) const {
  return first(filter, "cost");
}

Result<std::optional<Record>> RecordStore::chosen(const RecordFilter& filter) const {
  RecordFilter by = filter;
  by.searcher = "race";
  if (std::optional<Record> winner = TW_TRY(first(by, "rowid DESC"))) return winner;
  by.searcher = "rule";
  const std::optional<Record> rule = TW_TRY(first(by, "rowid DESC"));
  std::optional<Record> cheapest = TW_TRY(best(filter));
  constexpr double kClearly = 0.97;  // readings of different moments differ by as much
  if (cheapest && rule && cheapest->cost > kClearly * rule->cost) cheapest.reset();
  return cheapest;
}

Result<int64_t> RecordStore::count(const RecordFilter& filter) const {
  Query query(database_->handle, "SELECT count(*) FROM records" + condition(filter));
  bind(query, filter);
  TW_TRY(query.step());
  int64_t rows = 0;
  query.read(rows);
  return rows;
}

Result<int64_t> RecordStore::prune(int keep) {
  Query query(database_->handle,
              "DELETE FROM records WHERE rowid NOT IN (SELECT rowid FROM (SELECT rowid, "
              "row_number() OVER (PARTITION BY workload, target ORDER BY cost) AS place FROM "
              "records WHERE outcome = 'ok') WHERE place <= ?) AND rowid NOT IN (SELECT "
              "max(rowid) FROM records WHERE outcome = 'ok' AND searcher IN ('rule', 'race') GROUP "
              "BY workload, target, compiler, searcher)");
  query.bind(static_cast<int64_t>(keep));
  TW_TRY_STATUS(query.run());
  return sqlite3_changes(database_->handle);
}

Result<std::string> RecordStore::export_lines(const RecordFilter& filter) const {
  std::string text = lines_header();
  std::set<std::string> keys;
  std::string rows;
  TW_TRY_STATUS(each(filter, [&](const Record& record) {
    keys.insert(record.workload);
    rows += line_of(record);
  }));
  for (const std::string& key : keys)
    if (const Result<std::string> func = workload(key)) text += workload_line(key, *func);
  return text + rows;
}

Result<RecordStore::Imported> RecordStore::import_lines(const std::string& text) {
  Imported counts;
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line.find("\"tilewright-records\"") == std::string::npos)
    return fail(ErrorKind::Parse, "this is not a file of tuning records",
                "its first line has no \"format\":\"tilewright-records\"",
                "tilewright records export writes such files");
  std::vector<Record> records;
  for (int number = 2; std::getline(lines, line); ++number) {
    try {
      const nlohmann::json json = nlohmann::json::parse(line);
      if (json.contains("func")) {
        const std::string func = json.at("func"), key = json.at("workload");
        if (workload_key(func) != key) throw std::runtime_error("the workload's key is wrong");
        TW_TRY_STATUS(add_workload(key, func));
        continue;
      }
      if (json.contains("kernel")) continue;  // a package's list of kernels
      Record record;
      for_each_field(record, [&](std::string_view name, auto& value) {
        json.at(std::string(name)).get_to(value);
      });
      records.push_back(std::move(record));
    } catch (const std::exception& problem) {
      if (counts.broken++ == 0)
        counts.first_problem = fmt::format("line {}: {}", number, problem.what());
    }
  }
  const int64_t before = TW_TRY(count({}));
  TW_TRY_STATUS(add_all(records));
  counts.added = TW_TRY(count({})) - before;
  counts.known = static_cast<int64_t>(records.size()) - counts.added;
  return counts;
}

Result<RecordStore::Imported> RecordStore::merge(const RecordStore& other) {
  Imported counts;
  Status added;
  TW_TRY_STATUS(other.each_workload([&](const std::string& key, const std::string& func) {
    if (added) added = add_workload(key, func);
  }));
  TW_TRY_STATUS(added);
  const std::vector<Record> records = TW_TRY(other.find({}));
  const int64_t before = TW_TRY(count({}));
  TW_TRY_STATUS(add_all(records));
  counts.added = TW_TRY(count({})) - before;
  counts.known = static_cast<int64_t>(records.size()) - counts.added;
  return counts;
}

std::string lines_header() {
  return nlohmann::ordered_json{{"format", "tilewright-records"}, {"v", kSchema}}.dump() + "\n";
}

std::string line_of(const Record& record) {
  nlohmann::ordered_json json;
  for_each_field(
      record, [&](std::string_view name, const auto& value) { json[std::string(name)] = value; });
  return json.dump() + "\n";
}

std::string workload_line(const std::string& key, const std::string& func) {
  return nlohmann::ordered_json{{"workload", key}, {"func", func}}.dump() + "\n";
}

std::string workload_key(const std::string& printed_func) {
  return "sha256:" + sha256(printed_func);
}

}  // namespace tilewright::records
