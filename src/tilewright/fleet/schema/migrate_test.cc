// Applying numbered SQL files: each once, all of it or nothing, and never another text.
#include "tilewright/fleet/schema/migrate.h"

#include <gmock/gmock.h>

#include <thread>

#include "tilewright/postgres/testing/test_server.h"

namespace tilewright::fleet {
namespace {

using postgres::connect;
using postgres::Connection;
using postgres::new_database;
using ::testing::HasSubstr;

constexpr Migration kFirst = {
    "0001_first",
    "CREATE SCHEMA fleet;\n"
    "CREATE TABLE fleet.migrations (version int PRIMARY KEY, sha256 text NOT NULL);\n"
    "CREATE TABLE fleet.meta (version int, min_program text, epoch bigint);\n"
    "INSERT INTO fleet.meta VALUES (1, '0.1', 7);\n"
    "CREATE FUNCTION fleet.version() RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(m) FROM "
    "fleet.meta m $$;"};
constexpr Migration kSecond = {"0002_second", "CREATE TABLE fleet.second (x int);"};

std::string applied(Connection& connection) {
  return (*connection.query(
      "SELECT string_agg(version::text, ' ' ORDER BY version) FROM fleet.migrations"))[0][0]
      .value_or("none");
}

TEST(FleetSchema, ADatabaseWithoutOneIsToldApart) {
  const auto connection = connect(new_database());
  const auto none = state(*connection);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Unreachable);
  EXPECT_THAT(none.error().what, HasSubstr("PostgreSQL answers"));
  EXPECT_THAT(none.error().what, HasSubstr("but has no fleet"));
  EXPECT_THAT(none.error().fix, HasSubstr("tilewright fleet init"));
  // Somebody else's schema of that name is none either.
  ASSERT_TRUE(connection->execute_script("CREATE SCHEMA fleet"));
  EXPECT_EQ(state(*connection).error().kind, ErrorKind::Unreachable);
}

TEST(FleetSchema, EachFileIsAppliedOnce) {
  const auto connection = connect(new_database());
  const Migration files[] = {kFirst, kSecond};
  ASSERT_TRUE(migrate(*connection, std::span(files, 1)));
  EXPECT_EQ(applied(*connection), "1");
  const SchemaState first = *state(*connection);
  EXPECT_EQ(first.version, 1);
  EXPECT_EQ(first.least_program, "0.1");
  EXPECT_EQ(first.epoch, "7");
  EXPECT_TRUE(check(first, std::span(files, 1)));
  const Status older = check(first, files);
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().kind, ErrorKind::Package);
  EXPECT_THAT(older.error().why, HasSubstr("version 1, this program needs 2"));
  EXPECT_EQ(older.error().fix, "tilewright fleet migrate");
  for (int time = 0; time < 2; ++time) {
    const Status done = migrate(*connection, files);
    ASSERT_TRUE(done) << to_string(done.error());
    EXPECT_EQ(applied(*connection), "1 2");
    EXPECT_EQ(state(*connection)->version, 2);
  }
}

TEST(FleetSchema, ANewerOneIsRefusedUnlessItSaysOtherwise) {
  const auto connection = connect(new_database());
  const Migration files[] = {kFirst, kSecond};
  ASSERT_TRUE(migrate(*connection, files));
  const std::span<const Migration> older(files, 1);
  EXPECT_TRUE(check(*state(*connection), older, "0.1.0"));
  ASSERT_TRUE(connection->execute_script("UPDATE fleet.meta SET min_program = '0.10'"));
  EXPECT_TRUE(check(*state(*connection), older, "0.10.0"));
  const Status refused = check(*state(*connection), older, "0.9.9");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Package);
  EXPECT_THAT(refused.error().why, HasSubstr("version 2, this program knows 1"));
  EXPECT_EQ(refused.error().fix, "tilewright 0.10 or newer");
  // A program does not go on where a newer one has been.
  const Status migrated = migrate(*connection, older);
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().kind, ErrorKind::Package);
  EXPECT_THAT(migrated.error().why, HasSubstr("version 2, this program knows 1"));
}

TEST(FleetSchema, AnotherTextIsNotTheSameFile) {
  const auto connection = connect(new_database());
  const Migration files[] = {kFirst, kSecond};
  ASSERT_TRUE(migrate(*connection, files));
  const Migration changed[] = {
      kFirst, {"0002_second", "CREATE TABLE fleet.second (y int);"}, {"0003_third", "SELECT 1"}};
  const Status refused = migrate(*connection, changed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Package);
  EXPECT_THAT(refused.error().what, HasSubstr("0002_second"));
  EXPECT_THAT(refused.error().why, HasSubstr("SHA-256"));
  EXPECT_EQ(applied(*connection), "1 2");
}

TEST(FleetSchema, AFailedFileLeavesNothing) {
  const auto connection = connect(new_database());
  const Migration files[] = {kFirst,
                             {"0002_broken", "CREATE TABLE fleet.half (x int); SELECT 1 / 0;"}};
  const Status failed = migrate(*connection, files);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::Io);
  EXPECT_EQ(failed.error().place, "0002_broken");
  EXPECT_THAT(failed.error().why, HasSubstr("division by zero"));
  EXPECT_EQ(applied(*connection), "1");
  EXPECT_EQ((*connection->query("SELECT to_regclass('fleet.half')"))[0][0], std::nullopt);
  // Nor does one whose row in fleet.migrations cannot be kept.
  const Migration twice[] = {
      kFirst,
      {"0002_twice",
       "CREATE TABLE fleet.half (x int); INSERT INTO fleet.migrations VALUES "
       "(2, '');"}};
  EXPECT_FALSE(migrate(*connection, twice));
  EXPECT_EQ((*connection->query("SELECT to_regclass('fleet.half')"))[0][0], std::nullopt);
  const Migration mended[] = {kFirst, kSecond};
  EXPECT_TRUE(migrate(*connection, mended));
}

TEST(FleetSchema, SeveralMayBeginAtOnce) {
  const std::string url = new_database();
  const Migration files[] = {kFirst, {"0002_slow", "SELECT pg_sleep(0.05)"}};
  std::vector<std::thread> threads;
  std::vector<Status> done(4);
  for (Status& one : done) threads.emplace_back([&] { one = migrate(*connect(url), files); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& one : done) EXPECT_TRUE(one) << to_string(one.error());
  EXPECT_EQ(applied(*connect(url)), "1 2");
}

/// The files that the program brings.
TEST(FleetSchema, TheProgramsOwnFilesApply) {
  ASSERT_FALSE(migrations().empty());
  int64_t before = 0;
  for (const Migration& file : migrations()) EXPECT_EQ(file.version(), ++before) << file.name;
  const auto connection = connect(new_database());
  const Status done = migrate(*connection);
  ASSERT_TRUE(done) << to_string(done.error());
  const auto found = state(*connection);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->version, migrations().back().version());
  EXPECT_TRUE(check(*found));
  // In a second database of the same server, whose roles are there already.
  EXPECT_TRUE(migrate(*connect(new_database())));
}

}  // namespace
}  // namespace tilewright::fleet
