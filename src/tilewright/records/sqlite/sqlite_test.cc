#include "tilewright/records/sqlite/sqlite.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/records/sqlite/database.h"
#include "tilewright/records/testing/store_suite.h"

namespace tilewright::records {
namespace {

using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(
    Sqlite, StoreSuite,
    testing::Values(StoreForm{"File",
                              [](const std::string& folder, const std::string& name) {
                                return open_store(folder + "/deep/" + name + ".sqlite");
                              }},
                    StoreForm{"Memory", [](const std::string&,
                                           const std::string&) { return open_store(":memory:"); }}),
    form_name);

struct SqliteFile : testing::Test {
  TemporaryFolder folder = quick_folder();
  std::string path = folder.path() + "/deep/records.sqlite";
};

TEST_F(SqliteFile, KeepsWhatWasAdded) {
  ASSERT_TRUE(open_store(path).value()->add_all({sample_record(0)}, {{"k", "func"}}));
  for (const auto& store : {open_store(path).value(), open_store_to_read(path).value()}) {
    EXPECT_EQ(*store->find({}), std::vector<Record>{sample_record(0)});
    EXPECT_EQ(*store->workload("k"), "func");
  }
}

TEST_F(SqliteFile, WhatIsNoStoreIsRefused) {
  EXPECT_FALSE(open_store_to_read(path));
  const std::string text = folder.path() + "/text";
  ASSERT_TRUE(write_file(text, "this is a text file, not a data base, and long enough"));
  for (const auto& opened : {open_store(text), open_store_to_read(text)}) {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::Io);
    EXPECT_THAT(opened.error().place, HasSubstr(text));
  }
  EXPECT_FALSE(open_store("/proc/none/records.sqlite"));
  // An empty file is a store without records.
  ASSERT_TRUE(write_file(text, ""));
  EXPECT_EQ(*(*open_store_to_read(text))->count({}), 0);
  EXPECT_EQ(read_file(text)->size(), 0u);
  EXPECT_FALSE((*(*open_store(text))->last({})).has_value());
}

TEST_F(SqliteFile, ReadersCannotWrite) {
  ASSERT_TRUE(open_store(path));
  const auto reader = open_store_to_read(path).value();
  const Status added = reader->add(sample_record(0));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, ErrorKind::Io);
}

/// Executes statements in a file of its own connection.
void change(const std::string& path, const std::vector<std::string>& statements) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  for (const std::string& sql : statements)
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db) << ": " << sql;
  sqlite3_close(db);
}

/// The insertion of a row by a program of schema 1.
std::string old_insert(const Record& r) {
  return fmt::format(
      "INSERT OR IGNORE INTO records (workload, name, target, compiler, point, schedule, outcome, "
      "reason, cost, least, spread, readings, searcher, seed, \"when\") VALUES ('{}', '{}', '{}', "
      "'{}', '{}', '{}', '{}', '{}', {}, {}, {}, {}, '{}', {}, '{}')",
      r.workload, r.name, r.target, r.compiler, r.point, r.schedule, r.outcome, r.reason, r.cost,
      r.least, r.spread, r.readings, r.searcher, r.seed, r.when);
}

/// A file as programs of schema 1 wrote it.
void make_old(const std::string& path, const std::vector<Record>& records) {
  std::vector<std::string> statements = {
      "PRAGMA journal_mode = WAL",
      "CREATE TABLE IF NOT EXISTS records (\"workload\" TEXT NOT NULL, \"name\" TEXT NOT NULL, "
      "\"target\" TEXT NOT NULL, \"compiler\" TEXT NOT NULL, \"point\" TEXT NOT NULL, \"schedule\" "
      "TEXT NOT NULL, \"outcome\" TEXT NOT NULL, \"reason\" TEXT NOT NULL, \"cost\" REAL NOT NULL, "
      "\"least\" REAL NOT NULL, \"spread\" REAL NOT NULL, \"readings\" INTEGER NOT NULL, "
      "\"searcher\" TEXT NOT NULL, \"seed\" INTEGER NOT NULL, \"when\" TEXT NOT NULL, UNIQUE "
      "(workload, target, compiler, schedule, point, searcher, \"when\", cost))",
      "CREATE INDEX IF NOT EXISTS by_cost ON records (workload, target, outcome, cost)",
      "CREATE TABLE IF NOT EXISTS workloads (key TEXT PRIMARY KEY, func TEXT)",
      "INSERT INTO workloads VALUES ('k', 'func')",
      "PRAGMA user_version = 1",
      "BEGIN"};
  for (const Record& record : records) statements.push_back(old_insert(record));
  statements.push_back("COMMIT");
  change(path, statements);
}

std::vector<Record> records_of_all_kinds() {
  std::vector<Record> all;
  for (int i = 0; i < 40; ++i) all.push_back(sample_record(i));
  all[10].kind = all[10].searcher = kRuleKind;
  all[11].kind = all[11].searcher = kRaceKind;
  all[12].kind = kAlgorithmKind;
  all[12].searcher = "race";
  all[12].point = "algorithm: winograd 4";
  all[13].target = "cuda-sm_90a:NVIDIA H200";
  all[13].machine = "NVIDIA H200";
  all[15].target = "vta:0123456789ab";
  all[15].machine = "";
  all[15].unit = "cycles";
  return all;
}

int64_t version_of(const std::string& path) {
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  int64_t version = -1;
  {
    Query query(db, "PRAGMA user_version");
    if (query.step()) query.read(version);
  }
  sqlite3_close(db);
  return version;
}

TEST_F(SqliteFile, OldStoresAreReadAsTheyAre) {
  path = folder.path() + "/old.sqlite";
  const std::vector<Record> all = records_of_all_kinds();
  make_old(path, all);
  const std::string before = *read_file(path);
  {
    const auto store = open_store_to_read(path).value();
    EXPECT_EQ(*store->find({}), all);
    EXPECT_EQ(*store->count({}), 40);
    EXPECT_EQ(*store->count({.kind = kRuleKind}), 1);
    EXPECT_EQ(store->chosen({.workload = all[12].workload})->value(), all[12]);
    EXPECT_EQ(store->last({})->value(), all[38]);  // the 39th timed out
    EXPECT_EQ(*store->workload("k"), "func");
    EXPECT_FALSE(store->prune(1));
    EXPECT_FALSE(store->add(sample_record(50)));
  }
  EXPECT_EQ(version_of(path), 1);
  EXPECT_TRUE(*read_file(path) == before);
}

TEST_F(SqliteFile, OldStoresBecomeNewOnes) {
  path = folder.path() + "/old.sqlite";
  const std::vector<Record> all = records_of_all_kinds();
  make_old(path, all);
  for (int opened = 0; opened < 2; ++opened) {
    const auto store = open_store(path).value();
    EXPECT_EQ(*store->find({}), all);
    EXPECT_EQ(*store->workload("k"), "func");
    EXPECT_EQ(*store->add_all(all), 0) << "each is here already";
  }
  EXPECT_EQ(version_of(path), 2);
  EXPECT_EQ(*open_store(path).value()->prune(1), 40 - 6 - 2 - 3)
      << "six cheapest, two of their own "
         "targets, three decisions";
}

TEST_F(SqliteFile, OldStoresWithoutAVersionBecomeNewOnes) {
  path = folder.path() + "/old.sqlite";
  make_old(path, {sample_record(0)});
  change(path, {"PRAGMA user_version = 0", "DROP INDEX by_cost", "DROP TABLE workloads"});
  const auto store = open_store(path).value();
  EXPECT_EQ(*store->find({}), std::vector<Record>{sample_record(0)});
  EXPECT_FALSE(store->workload("k"));
}

/// What cannot be brought to the newest schema stays as it is.
TEST_F(SqliteFile, AFailedUpgradeLosesNothing) {
  path = folder.path() + "/old.sqlite";
  make_old(path, records_of_all_kinds());
  change(path, {"CREATE TABLE old_records (in_the_way INTEGER)"});
  const auto opened = open_store(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::Io);
  EXPECT_EQ(version_of(path), 1);
  EXPECT_EQ(*open_store_to_read(path).value()->count({}), 40);
  change(path, {"DROP TABLE old_records"});
  EXPECT_EQ(*open_store(path).value()->count({}), 40);
}

TEST_F(SqliteFile, SeveralMayUpgradeAtOnce) {
  path = folder.path() + "/old.sqlite";
  std::vector<Record> all;
  for (int i = 0; i < 5000; ++i) all.push_back(sample_record(i));
  make_old(path, all);
  for (int i = 0; i < 4; ++i)
    if (fork() == 0) {
      const auto store = open_store(path);
      _exit(store && (*store)->add(sample_record(10000 + i)) ? 0 : 1);
    }
  for (int i = 0; i < 4; ++i) {
    int status = -1;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(*open_store(path).value()->count({}), 5004);
}

TEST_F(SqliteFile, ProgramsOfTheOldSchemaAreToldSo) {
  path = folder.path() + "/old.sqlite";
  make_old(path, {sample_record(0)});
  sqlite3* db = nullptr;  // of such a program, which had the file open
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, old_insert(sample_record(2)).c_str(), nullptr, nullptr, nullptr),
            SQLITE_OK);
  ASSERT_TRUE(open_store(path));
  EXPECT_NE(sqlite3_exec(db, old_insert(sample_record(4)).c_str(), nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_THAT(sqlite3_errmsg(db), HasSubstr("a newer program has changed the schema"));
  sqlite3_close(db);
  EXPECT_EQ(*open_store(path).value()->count({}), 2);
}

TEST_F(SqliteFile, NewerStoresAreRefusedWithBothVersions) {
  path = folder.path() + "/new.sqlite";
  ASSERT_TRUE(open_store(path));
  change(path, {"PRAGMA user_version = 3"});
  for (const auto& opened : {open_store(path), open_store_to_read(path)}) {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::Package);
    EXPECT_THAT(opened.error().why, HasSubstr("version 3, this program writes 2"));
  }
}

/// Somebody else's: neither the file nor anything beside it is written. Only root can become
/// somebody else.
TEST_F(SqliteFile, StoresOfOthersAreRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  path = folder.path() + "/old 100%.sqlite";
  make_old(path, records_of_all_kinds());
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  for (int round = 0; round < 2; ++round) {
    const pid_t reader = fork();
    if (reader == 0) {
      if (setuid(65534) != 0) _exit(2);
      const auto store = open_store_to_read(path);
      _exit(store && (*store)->find({}) == records_of_all_kinds() && !open_store(path) ? 0 : 1);
    }
    int status = -1;
    waitpid(reader, &status, 0);
    EXPECT_EQ(status, 0) << "schema " << round + 1;
    ASSERT_TRUE(open_store(path));  // brings it to schema 2
  }
}

TEST_F(SqliteFile, CommitsReachTheDisk) {
  const auto database = *Database::open(path);
  Query query(database->handle, "PRAGMA synchronous");
  ASSERT_TRUE(query.step());
  int64_t level = 0;
  query.read(level);
  EXPECT_EQ(level, 2) << "FULL: below, a loss of power takes commits away";
}

TEST_F(SqliteFile, H4_FileSystemsOfSeveralMachinesAreRefused) {
  ASSERT_TRUE(open_store(path));
  constexpr FileSystemOf kRefused[] = {[](const std::string&) -> int64_t { return 0x6969; },
                                       [](const std::string&) -> int64_t { return 0xff534d42; },
                                       [](const std::string&) -> int64_t { return 0xfe534d42; },
                                       [](const std::string&) -> int64_t { return 0x65735546; },
                                       [](const std::string&) -> int64_t { return 0x0bd00bd0; },
                                       [](const std::string&) -> int64_t { return 0x00c36400; },
                                       [](const std::string&) -> int64_t { return 0x47504653; }};
  for (const FileSystemOf kind : kRefused)
    for (const auto& opened : {Database::open(path, kind), Database::open_to_read(path, kind)}) {
      ASSERT_FALSE(opened);
      EXPECT_EQ(opened.error().kind, ErrorKind::Io);
      EXPECT_THAT(opened.error().what, HasSubstr(path));
      EXPECT_THAT(opened.error().fix, HasSubstr("postgresql://"));
    }
  EXPECT_THAT(check_file_system(path, kRefused[0]).error().why, HasSubstr("NFS"));
  EXPECT_TRUE(check_file_system(":memory:", kRefused[0]));
  constexpr FileSystemOf kLocal = [](const std::string&) -> int64_t { return 0xef53; };
  EXPECT_TRUE(Database::open(path, kLocal));
  EXPECT_TRUE(Database::open_to_read(path, kLocal));
  // The folder of a file that is not there yet is asked for.
  constexpr FileSystemOf kExists = [](const std::string& there) -> int64_t {
    return access(there.c_str(), F_OK) == 0 ? 0x6969 : 0xef53;
  };
  EXPECT_FALSE(check_file_system(folder.path() + "/none/at/all.sqlite", kExists));
  EXPECT_FALSE(check_file_system("relative.sqlite", kExists));
  EXPECT_NE(file_system_of("/"), 0);
  EXPECT_EQ(file_system_of("/proc"), 0x9fa0);
}

TEST_F(SqliteFile, A6_SurvivesAKilledWriter) {
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(open_store(path));
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      const auto store = open_store(path).value();
      for (int i = 0;; ++i) {
        if (!store->add(sample_record(round * 100000 + i))) _exit(1);
        if (write(pipes[1], &i, sizeof i) < 0) _exit(1);
      }
    }
    close(pipes[1]);
    usleep(static_cast<useconds_t>(5000 + 3000 * round));
    kill(writer, SIGKILL);
    int added = -1;
    for (int i; read(pipes[0], &i, sizeof i) == sizeof i;) added = i;
    close(pipes[0]);
    waitpid(writer, nullptr, 0);
    std::set<std::string> schedules;
    const auto again = open_store(path);
    ASSERT_TRUE(again) << to_string(again.error());
    const auto found = (*again)->find({});
    ASSERT_TRUE(found) << to_string(found.error());
    for (const Record& r : *found) schedules.insert(r.schedule);
    for (int i = 0; i <= added; ++i)
      ASSERT_TRUE(schedules.contains(sample_record(round * 100000 + i).schedule))
          << round << " " << i;
  }
}

TEST_F(SqliteFile, A5_OpensQuicklyWhenMany) {
  std::vector<Record> all;
  for (int i = 0; i < 100000; ++i) all.push_back(sample_record(i));
  ASSERT_TRUE(open_store(path).value()->add_all(all));
  const std::clock_t start = std::clock();  // of this process: others may be at work
  const auto store = open_store(path).value();
  const RecordFilter filter{.workload = "sha256:0", .target = "cpu:znver4@1a2b3c4d:2"};
  EXPECT_EQ(store->best(filter)->value().cost, 1000.5 - 99996);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 2);
}

}  // namespace
}  // namespace tilewright::records
