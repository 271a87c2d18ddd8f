// The schema `fleet` of a database: numbered SQL files, applied one after the other and never
// changed afterwards.
//
//   0001_tables.sql, 0002_queue.sql, ...   each in a transaction of its own, with a row in
//                                          fleet.migrations: version, sha256 of the text, when, who
//
// The number of the last file is the version of the schema. Functions that change get new names and
// old ones stay for one version, so a program may work with a schema newer than its own;
// `fleet.version()` says which program that needs at least.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tilewright/base/result.h"
#include "tilewright/postgres/connection.h"

namespace tilewright::fleet {

struct Migration {
  std::string_view name, text;  ///< `0001_tables`, SQL

  /// The number at the beginning of its name.
  int64_t version() const;
};
/// Those that this program brings, in order; and its own version.
std::span<const Migration> migrations();
std::string program_version();

struct SchemaState {
  int64_t version = 0;        ///< of the database
  std::string least_program;  ///< version of the oldest program that works with it: `0.1`
  std::string epoch;          ///< changes with each failover
};
/// What any login may ask. errors: Unreachable (PostgreSQL answers, but has no fleet), of the
/// connection.
Result<SchemaState> state(postgres::Connection& connection);
/// Whether a program can work with it that brings `files`. errors: Package, with both versions.
Status check(const SchemaState& state, std::span<const Migration> files = migrations(),
             const std::string& program = program_version());

/// Brings the schema to this program's version: all files that are missing. Several at once wait
/// for each other. The login needs the rights of the schema's owner.
///   errors: Package (the schema is newer; a file that was applied had another text), of the
///   connection: then all files before the one that failed are applied.
Status migrate(postgres::Connection& connection, std::span<const Migration> files = migrations());

}  // namespace tilewright::fleet
