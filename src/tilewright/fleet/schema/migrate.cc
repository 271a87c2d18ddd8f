#include "tilewright/fleet/schema/migrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tilewright/base/file.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::fleet {
namespace {

#include "migrations_text.h"

constexpr int64_t kLock = 0x74696c6577;  ///< of migrations, among PostgreSQL's advisory locks

int64_t number(const std::optional<std::string>& text) {
  return text ? std::strtoll(text->c_str(), nullptr, 10) : 0;
}

int64_t newest(std::span<const Migration> files) {
  return files.empty() ? 0 : files.back().version();
}

tl::unexpected<Error> newer(int64_t version, int64_t known, const std::string& needs) {
  return fail(ErrorKind::Package, "the fleet's schema is newer than this program",
              fmt::format("it has version {}, this program knows {}", version, known), needs);
}

/// What fleet.migrations has to agree with. errors: Package.
Status compare(const postgres::Rows& applied, std::span<const Migration> files) {
  for (const postgres::Row& row : applied) {
    const int64_t version = number(row[0]);
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const Migration& one) { return one.version() == version; });
    if (file == files.end()) return newer(version, newest(files), "a newer tilewright");
    if (row[1] != sha256(file->text))
      return fail(ErrorKind::Package,
                  fmt::format("the fleet's schema was made by another {}", file->name),
                  fmt::format("the SHA-256 of its text was {}, this program's is {}",
                              row[1].value_or(""), sha256(file->text)),
                  "the program that made it, or a new database and tilewright fleet init");
  }
  return {};
}

/// The inside of one file's transaction. Whoever comes second waits, and finds it done.
Status apply(postgres::Connection& connection, const Migration& file,
             std::span<const Migration> files) {
  TW_TRY(connection.query("SELECT pg_advisory_xact_lock($1)", {kLock}));
  const bool any =
      TW_TRY(connection.query("SELECT to_regclass('fleet.migrations')"))[0][0].has_value();
  postgres::Rows applied;
  if (any)
    applied =
        TW_TRY(connection.query("SELECT version, sha256 FROM fleet.migrations ORDER BY version"));
  TW_TRY_STATUS(compare(applied, files));
  for (const postgres::Row& row : applied)
    if (number(row[0]) == file.version()) return {};
  TW_TRY_STATUS(connection.execute_script(std::string(file.text)));
  TW_TRY(connection.query(
      "WITH kept AS (INSERT INTO fleet.migrations (version, sha256) VALUES ($1, $2) RETURNING "
      "version) UPDATE fleet.meta SET version = kept.version FROM kept",
      {file.version(), sha256(file.text)}));
  return {};
}

}  // namespace

int64_t Migration::version() const { return std::strtoll(std::string(name).c_str(), nullptr, 10); }

std::span<const Migration> migrations() { return kMigrations; }

std::string program_version() { return TILEWRIGHT_VERSION; }

Result<SchemaState> state(postgres::Connection& connection) {
  const Result<postgres::Rows> rows = connection.query(
      "SELECT v->>'version', v->>'min_program', v->>'epoch' FROM fleet.version() AS v");
  if (rows)
    return SchemaState{number((*rows)[0][0]), (*rows)[0][1].value_or(""),
                       (*rows)[0][2].value_or("")};
  if (connection.lost()) return tl::unexpected<Error>(rows.error());
  // The catalogue tells everybody; asking for what is in a schema needs rights.
  const postgres::Rows found = TW_TRY(connection.query(
      "SELECT 1 FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = "
      "'fleet' AND p.proname = 'version'"));
  if (!found.empty()) return tl::unexpected<Error>(rows.error());
  return fail(ErrorKind::Unreachable,
              fmt::format("PostgreSQL answers at {}, but has no fleet", connection.place()),
              "there is no schema 'fleet' in the database", "tilewright fleet init makes it");
}

Status check(const SchemaState& state, std::span<const Migration> files,
             const std::string& program) {
  if (state.version < newest(files))
    return fail(
        ErrorKind::Package, "the fleet's schema is older than this program",
        fmt::format("it has version {}, this program needs {}", state.version, newest(files)),
        "tilewright fleet migrate");
  if (!at_least(program, state.least_program))
    return newer(state.version, newest(files), "tilewright " + state.least_program + " or newer");
  return {};
}

Status migrate(postgres::Connection& connection, std::span<const Migration> files) {
  for (const Migration& file : files) {
    TW_TRY_STATUS(connection.execute_script("BEGIN"));
    Status done = apply(connection, file, files);
    if (done) done = connection.execute_script("COMMIT");
    if (done) continue;
    (void)connection.execute_script("ROLLBACK");
    return tl::unexpected<Error>(std::move(done.error()).at(std::string(file.name)));
  }
  return {};
}

}  // namespace tilewright::fleet
