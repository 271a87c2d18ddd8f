#include "tilewright/records/sqlite/database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

namespace tilewright::records {
namespace {

// 1: records say neither kind nor machine nor unit. 2: they do.
constexpr int64_t kSchema = 2;

Result<int64_t> number(sqlite3* db, const std::string& sql) {
  Query query(db, sql);
  TW_TRY(query.step());
  int64_t value = 0;
  query.read(value);
  return value;
}

/// Calls f(column, type in SQL) for each column of a record.
void each_column(const std::function<void(std::string_view name, const char* type)>& f) {
  Record record;
  for_each_field(record, [&](std::string_view name, auto& value) {
    using T = std::decay_t<decltype(value)>;
    f(name, std::is_same_v<T, std::string> ? "TEXT"
            : std::is_same_v<T, double>    ? "REAL"
                                           : "INTEGER");
  });
}

/// `where`: empty, or `TEMP `. The same measurement under two imports has equal fields, the time of
/// measuring included.
Status make_tables(sqlite3* db, const std::string& where) {
  std::string columns;
  each_column([&](std::string_view name, const char* type) {
    columns += fmt::format("\"{}\" {} NOT NULL, ", name, type);
  });
  TW_TRY_STATUS(execute(
      db, fmt::format("CREATE {}TABLE records ({} UNIQUE (workload, target, compiler, kind, "
                      "schedule, point, searcher, \"when\", cost))",
                      where, columns)));
  TW_TRY_STATUS(
      execute(db, fmt::format("CREATE {}TABLE IF NOT EXISTS workloads (key TEXT PRIMARY KEY, func "
                              "TEXT)",
                              where)));
  TW_TRY_STATUS(execute(db, "CREATE INDEX by_cost ON records (workload, target, outcome, cost)"));
  // A program of schema 1 that has had the file open since then would have its rows ignored without
  // a word (INSERT OR IGNORE): it gets an error.
  return execute(db, fmt::format("CREATE {}TRIGGER refuse_older BEFORE INSERT ON records WHEN "
                                 "NEW.kind IS NULL BEGIN SELECT RAISE(ABORT, 'a newer program has "
                                 "changed the schema of this store'); END",
                                 where));
}

// What rows of schema 1 are, as functions of SQL.
std::string argument(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return {text == nullptr ? "" : text, static_cast<size_t>(sqlite3_value_bytes(value))};
}
void answer(sqlite3_context* context, const std::string& text) {
  sqlite3_result_text(context, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}
void kind_function(sqlite3_context* context, int, sqlite3_value** values) {
  answer(context, old_kind(argument(values[0]), argument(values[1])));
}
void machine_function(sqlite3_context* context, int, sqlite3_value** values) {
  answer(context, old_machine(argument(values[0])));
}
void unit_function(sqlite3_context* context, int, sqlite3_value** values) {
  answer(context, old_unit(argument(values[0])));
}

/// The columns of schema 2, out of a table of schema 1.
std::string columns_of_old(sqlite3* db) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  sqlite3_create_function(db, "old_kind", 2, kFlags, nullptr, kind_function, nullptr, nullptr);
  sqlite3_create_function(db, "old_machine", 1, kFlags, nullptr, machine_function, nullptr,
                          nullptr);
  sqlite3_create_function(db, "old_unit", 1, kFlags, nullptr, unit_function, nullptr, nullptr);
  std::string text;
  each_column([&](std::string_view name, const char*) {
    const std::string value = name == "kind"      ? "old_kind(searcher, point)"
                              : name == "machine" ? "old_machine(target)"
                              : name == "unit"    ? "old_unit(target)"
                                                  : fmt::format("\"{}\"", name);
    text += fmt::format("{}{} AS \"{}\"", text.empty() ? "" : ", ", value, name);
  });
  return text;
}

/// Rows keep their order. errors: Io; also if any would be lost.
Status upgrade(sqlite3* db) {
  const int64_t before = TW_TRY(number(db, "SELECT count(*) FROM records"));
  TW_TRY_STATUS(execute(db, "DROP INDEX IF EXISTS by_cost"));
  TW_TRY_STATUS(execute(db, "ALTER TABLE records RENAME TO old_records"));
  TW_TRY_STATUS(make_tables(db, ""));
  TW_TRY_STATUS(
      execute(db, fmt::format("INSERT INTO records ({}) SELECT {} FROM old_records ORDER BY rowid",
                              record_columns(), columns_of_old(db))));
  const int64_t after = TW_TRY(number(db, "SELECT count(*) FROM records"));
  if (after != before)
    return fail(ErrorKind::Io, "the record store cannot be brought to the newest schema",
                fmt::format("{} of {} records would remain", after, before));
  return execute(db, "DROP TABLE old_records");
}

/// The version of the schema; 0: there are no tables. errors: Io, Package (a newer one).
Result<int64_t> schema_of(sqlite3* db, const std::string& path) {
  const int64_t found = TW_TRY(number(db, "PRAGMA user_version"));
  if (found < 0 || found > kSchema)
    return fail(ErrorKind::Package, fmt::format("{} is of another schema", path),
                fmt::format("version {}, this program writes {}", found, kSchema),
                "tilewright records export with the program that wrote it");
  // Programs of schema 1 made the tables first: one that was killed then left no version.
  if (found == 0) return number(db, "SELECT count(*) FROM sqlite_master WHERE name = 'records'");
  return found;
}

Status prepare_to_write(sqlite3* db, const std::string& path) {
  const int64_t known = TW_TRY(schema_of(db, path));
  TW_TRY_STATUS(execute(db, "PRAGMA journal_mode = WAL"));
  // Store::add_all promises that a loss of power takes nothing away.
  TW_TRY_STATUS(execute(db, "PRAGMA synchronous = FULL"));
  if (known == kSchema) return {};
  const auto transaction = TW_TRY(Transaction::begin(db));
  const int64_t found = TW_TRY(schema_of(db, path));  // somebody else may have been faster
  if (found == 0) TW_TRY_STATUS(make_tables(db, ""));
  if (found == 1) TW_TRY_STATUS(upgrade(db));
  TW_TRY_STATUS(execute(db, fmt::format("PRAGMA user_version = {}", kSchema)));
  return transaction->commit();
}

/// Names of this connection alone stand for tables that are missing or older: nothing in the file
/// changes.
Status prepare_to_read(sqlite3* db, const std::string& path) {
  const int64_t found = TW_TRY(schema_of(db, path));
  if (found == 0) TW_TRY_STATUS(make_tables(db, "TEMP "));
  if (found == 1)
    TW_TRY_STATUS(execute(
        db, fmt::format("CREATE TEMP VIEW records AS SELECT rowid AS rowid, {} FROM main.records",
                        columns_of_old(db))));
  return execute(db, "PRAGMA query_only = ON");
}

Result<std::shared_ptr<Database>> opened(const std::string& path, const std::string& name,
                                         int flags) {
  auto database = std::make_shared<Database>();
  if (sqlite3_open_v2(name.c_str(), &database->handle, flags, nullptr) != SQLITE_OK)
    return fail(ErrorKind::Io, fmt::format("cannot open the record store {}", path),
                sqlite3_errmsg(database->handle), "set TILEWRIGHT_RECORDS to another file");
  sqlite3_busy_timeout(database->handle, 10000);
  return database;
}

/// A file that must not be written, as SQLite names it: readers of a store write beside it unless
/// nobody is said to change it.
std::string immutable_name(const std::string& path) {
  std::error_code ignored;
  std::string name;
  for (const char c : std::filesystem::absolute(path, ignored).string())
    name += c == '%' ? "%25" : c == '?' ? "%3f" : c == '#' ? "%23" : std::string(1, c);
  return fmt::format("file:{}?immutable=1", name);
}

}  // namespace

Query::Query(sqlite3* db, const std::string& sql) : db_(db) {
  ok_ = sqlite3_prepare_v2(db, sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK;
}

void Query::bind(const std::string& value) {
  sqlite3_bind_text(statement_, ++bound_, value.data(), static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);
}

void Query::bind(const Record& record) {
  for_each_field(record, [&](std::string_view, const auto& value) { bind(value); });
}

void Query::read(std::string& value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
  const int bytes = sqlite3_column_bytes(statement_, column_++);
  value.assign(text == nullptr ? "" : text, static_cast<size_t>(bytes));
}

void Query::read(Record& record) {
  for_each_field(record, [&](std::string_view, auto& value) { read(value); });
}

Result<bool> Query::step() {
  column_ = 0;
  const int code = ok_ ? sqlite3_step(statement_) : SQLITE_ERROR;
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  if (code == SQLITE_NOTADB)
    return fail(ErrorKind::Io, "this is no SQLite file", sqlite3_errmsg(db_),
                "name another file, or a new one");
  return fail(ErrorKind::Io, "the record store refused a statement", sqlite3_errmsg(db_));
}

Status Query::run() {
  TW_TRY(step());
  return {};
}

void Query::reset() {
  sqlite3_reset(statement_);
  bound_ = 0;
}

Status execute(sqlite3* db, const std::string& sql) { return Query(db, sql).run(); }

Result<std::unique_ptr<Transaction>> Transaction::begin(sqlite3* db) {
  TW_TRY_STATUS(execute(db, "BEGIN IMMEDIATE"));
  return std::unique_ptr<Transaction>(new Transaction(db));
}

Transaction::~Transaction() {
  if (open_) (void)execute(db_, "ROLLBACK");
}

Status Transaction::commit() {
  TW_TRY_STATUS(execute(db_, "COMMIT"));
  open_ = false;
  return {};
}

std::string record_columns() {
  std::string names;
  each_column([&](std::string_view name, const char*) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
  });
  return names;
}

Result<std::shared_ptr<Database>> Database::open(const std::string& path, FileSystemOf kind_of) {
  TW_TRY_STATUS(check_file_system(path, kind_of));
  std::error_code ignored;  // a folder that cannot be made shows when the file is opened
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  auto database = TW_TRY(opened(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  if (Status ready = prepare_to_write(database->handle, path); !ready)
    return tl::unexpected<Error>(std::move(ready.error()).at(path));
  return database;
}

Result<std::shared_ptr<Database>> Database::open_to_read(const std::string& path,
                                                         FileSystemOf kind_of) {
  TW_TRY_STATUS(check_file_system(path, kind_of));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool ours = ::access(path.c_str(), W_OK) == 0 &&
                    ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
  auto database =
      ours ? TW_TRY(opened(path, path, SQLITE_OPEN_READWRITE))
           : TW_TRY(opened(path, immutable_name(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
  if (Status ready = prepare_to_read(database->handle, path); !ready)
    return tl::unexpected<Error>(std::move(ready.error()).at(path));
  return database;
}

}  // namespace tilewright::records
