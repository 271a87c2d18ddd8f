#include "tilewright/codesign/sqlite/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <charconv>
#include <cmath>
#include <filesystem>

#include "tilewright/records/sqlite/database.h"

namespace tilewright::codesign {
namespace {

using records::execute;
using records::Query;

constexpr int kSchema = 2;  // user_version of the file
constexpr int kApplication = 0x54574344;

/// `1 2.5 3`: numbers as they were, to the last bit.
template <class T>
std::string to_text(const std::vector<T>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

template <class T>
bool from_text(const std::string& text, std::vector<T>& values) {
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    T value{};
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) return false;
    values.push_back(value);
    at = next != end && *next == ' ' ? next + 1 : next;
  }
  return true;
}

tl::unexpected<Error> no_study(const std::string& path, const std::string& why) {
  return fail(ErrorKind::Package, fmt::format("'{}' is no study of this program", path), why,
              "give -o another folder");
}

Status insert_row(sqlite3* db, const StudyRow& row) {
  Query insert(
      db,
      "INSERT OR IGNORE INTO evaluations (point, level, objectives, violations, reason, seconds, "
      "design) VALUES (?, ?, ?, ?, ?, ?, ?)");
  insert.bind(to_text(row.trial.point));
  insert.bind(row.level);
  insert.bind(to_text(row.trial.outcome.objectives));
  insert.bind(to_text(row.trial.outcome.violations));
  insert.bind(row.trial.outcome.reason);
  insert.bind(row.trial.seconds);
  insert.bind(row.design);
  return insert.run();
}

}  // namespace

std::string differences(const StudyKey& here, const StudyKey& there) {
  StudyKey all = here;
  all.insert(there.begin(), there.end());
  const auto value = [](const StudyKey& key, const std::string& name) {
    const auto found = key.find(name);
    return found == key.end() ? std::string("nothing") : found->second;
  };
  std::vector<std::string> lines;
  for (const auto& [name, any] : all)
    if (value(here, name) != value(there, name))
      lines.push_back(
          fmt::format("{}: here {}, there {}", name, value(here, name), value(there, name)));
  return fmt::format("{}", fmt::join(lines, "; "));
}

struct Study::State {
  std::string path;
  sqlite3* db = nullptr;
  ~State() { sqlite3_close(db); }

  static Result<std::unique_ptr<State>> open(const std::string& path, int flags) {
    auto state = std::make_unique<State>();
    state->path = path;
    if (sqlite3_open_v2(path.c_str(), &state->db, flags, nullptr) != SQLITE_OK)
      return fail(ErrorKind::Io, fmt::format("cannot open '{}'", path),
                  state->db ? sqlite3_errmsg(state->db) : "out of memory");
    sqlite3_busy_timeout(state->db, 10000);
    return state;
  }
  Result<int64_t> pragma(const std::string& name) const {
    Query query(db, "PRAGMA " + name);
    int64_t value = 0;
    if (!TW_TRY(query.step())) return value;
    query.read(value);
    return value;
  }
};

Study::Study(std::unique_ptr<State> state) : state_(std::move(state)) {}
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;
Study::~Study() = default;

Result<Study> Study::open_to_read(const std::string& path) {
  if (!std::filesystem::exists(path))
    return fail(ErrorKind::Io,
                fmt::format("there is no search in '{}'",
                            std::filesystem::path(path).parent_path().string()),
                fmt::format("'{}' does not exist", path),
                "tilewright codesign search MODEL --space edge -o FOLDER makes one");
  auto state = TW_TRY(State::open(path, SQLITE_OPEN_READWRITE));
  const Result<int64_t> application = state->pragma("application_id");
  if (!application) return no_study(path, application.error().why);
  if (*application != kApplication) return no_study(path, "it is another database");
  if (const int64_t schema = TW_TRY(state->pragma("user_version")); schema != kSchema)
    return no_study(path,
                    fmt::format("its form is number {}, this program knows {}", schema, kSchema));
  return Study(std::move(state));
}

Result<Study> Study::open(const std::string& path, const StudyKey& key,
                          records::FileSystemOf kind_of) {
  if (const Status local = records::check_file_system(path, kind_of); !local)
    return fail(ErrorKind::Io, fmt::format("the study {} is on a network file system", path),
                local.error().why, "-o names a folder on a local disk; copy it when all is done");
  {
    auto state = TW_TRY(State::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
    const Result<int64_t> application = state->pragma("application_id");
    if (!application) return no_study(path, application.error().why);
    // Everything or nothing: a file that was cut off in the middle is made again.
    if (*application == 0) {
      TW_TRY_STATUS(execute(state->db, "PRAGMA synchronous = FULL"));
      const auto transaction = TW_TRY(records::Transaction::begin(state->db));
      TW_TRY_STATUS(execute(state->db, "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT)"));
      TW_TRY_STATUS(
          execute(state->db,
                  "CREATE TABLE evaluations (number INTEGER PRIMARY KEY, point TEXT, level TEXT, "
                  "objectives TEXT, violations TEXT, reason TEXT, seconds REAL, design TEXT, "
                  "UNIQUE (point, level))"));
      for (const auto& [name, value] : key) {
        Query insert(state->db, "INSERT INTO about VALUES (?, ?)");
        insert.bind(name);
        insert.bind(value);
        TW_TRY_STATUS(insert.run());
      }
      TW_TRY_STATUS(execute(state->db, fmt::format("PRAGMA application_id = {}", kApplication)));
      TW_TRY_STATUS(execute(state->db, fmt::format("PRAGMA user_version = {}", kSchema)));
      TW_TRY_STATUS(transaction->commit());
    }
  }
  Study study = TW_TRY(open_to_read(path));
  TW_TRY_STATUS(execute(study.state_->db, "PRAGMA synchronous = FULL"));
  if (const StudyKey there = TW_TRY(study.key()); there != key)
    return fail(ErrorKind::Package, fmt::format("'{}' holds another search", path),
                differences(key, there), "give -o another folder");
  return study;
}

Status Study::add(const std::vector<StudyRow>& rows) {
  const auto transaction = TW_TRY(records::Transaction::begin(state_->db));
  for (const StudyRow& row : rows) TW_TRY_STATUS(insert_row(state_->db, row));
  return transaction->commit();
}

Result<std::vector<StudyRow>> Study::rows() const {
  Query query(
      state_->db,
      "SELECT point, level, objectives, violations, reason, seconds, design FROM evaluations "
      "ORDER BY number");
  std::vector<StudyRow> rows;
  while (TW_TRY(query.step())) {
    StudyRow row;
    std::string point, objectives, violations;
    query.read(point);
    query.read(row.level);
    query.read(objectives);
    query.read(violations);
    query.read(row.trial.outcome.reason);
    query.read(row.trial.seconds);
    query.read(row.design);
    if (!from_text(point, row.trial.point) ||
        !from_text(objectives, row.trial.outcome.objectives) ||
        !from_text(violations, row.trial.outcome.violations))
      return no_study(state_->path, fmt::format("evaluation {} cannot be read", rows.size() + 1));
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<StudyKey> Study::key() const {
  Query query(state_->db, "SELECT name, value FROM about");
  StudyKey key;
  while (TW_TRY(query.step())) {
    std::string name, value;
    query.read(name);
    query.read(value);
    key[name] = value;
  }
  return key;
}

}  // namespace tilewright::codesign
