// A SQLite database that holds records: statements, transactions and the versions of its schema.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

#include "tilewright/base/result.h"
#include "tilewright/records/record.h"
#include "tilewright/records/sqlite/file_system.h"

namespace tilewright::records {

/// A prepared statement: values bound in order, rows read in order.
class Query {
 public:
  Query(sqlite3* db, const std::string& sql);
  ~Query() { sqlite3_finalize(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  void bind(const std::string& value);
  void bind(double value) { sqlite3_bind_double(statement_, ++bound_, value); }
  void bind(int64_t value) { sqlite3_bind_int64(statement_, ++bound_, value); }
  void bind(const Record& record);

  void read(std::string& value);
  void read(double& value) { value = sqlite3_column_double(statement_, column_++); }
  void read(int64_t& value) { value = sqlite3_column_int64(statement_, column_++); }
  void read(Record& record);

  /// True if there is a row; false at the end. errors: Io.
  Result<bool> step();
  Status run();
  /// Ready to be bound and run again.
  void reset();

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  bool ok_ = false;
  int bound_ = 0, column_ = 0;
};

Status execute(sqlite3* db, const std::string& sql);

/// Everything until `commit`, or nothing. Others that write wait.
class Transaction {
 public:
  /// errors: Io.
  static Result<std::unique_ptr<Transaction>> begin(sqlite3* db);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Status commit();

 private:
  explicit Transaction(sqlite3* db) : db_(db) {}
  sqlite3* db_;
  bool open_ = true;
};

/// `a, b, c`: the columns of a record, in the order of its fields.
std::string record_columns();

/// An open file with the tables `records` and `workloads` of the newest schema.
struct Database {
  sqlite3* handle = nullptr;

  Database() = default;
  ~Database() { sqlite3_close(handle); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Makes the tables, or brings those of an older schema to the newest. errors: Io (also: a file
  /// system that machines share), Package.
  static Result<std::shared_ptr<Database>> open(const std::string& path,
                                                FileSystemOf kind_of = file_system_of);
  /// Tables of an older schema are seen as those of the newest, and stay as they are. errors: Io,
  /// Package.
  static Result<std::shared_ptr<Database>> open_to_read(const std::string& path,
                                                        FileSystemOf kind_of = file_system_of);
};

}  // namespace tilewright::records
