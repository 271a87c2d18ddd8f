// The store of a fleet: the common tests, and what a server can do that a file cannot.
#include "tilewright/records/postgres/postgres.h"

#include <set>
#include <thread>

#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/postgres/testing/test_server.h"
#include "tilewright/records/testing/store_suite.h"

namespace tilewright::records {
namespace {

using postgres::connect;
using ::testing::HasSubstr;

/// The URL of a new fleet: a copy of one that is made once.
std::string new_fleet() {
  static const std::string pattern = [] {
    const std::string url = postgres::new_database();
    const Status made = fleet::migrate(*connect(url));
    EXPECT_TRUE(made) << to_string(made.error());
    const size_t name = url.find("/", url.find("@")) + 1;
    return url.substr(name, url.find('?') - name);
  }();
  return postgres::new_database(pattern);
}

INSTANTIATE_TEST_SUITE_P(Postgres, StoreSuite,
                         testing::Values(StoreForm{"Server",
                                                   [](const std::string&, const std::string&) {
                                                     return open_postgres_store(new_fleet());
                                                   }}),
                         form_name);

TEST(PostgresStore, TextsAndNumbersComeBackAsTheyWere) {
  const auto store = *open_postgres_store(new_fleet());
  Record record = sample_record(0);
  record.reason = "\xc3\xa9 \\u0000 \" \t\n {}";
  record.cost = 0.1 + 0.2;
  record.least = 5e-324;
  record.spread = 1.7976931348623157e308;
  record.seed = std::numeric_limits<int64_t>::min();
  record.readings = std::numeric_limits<int64_t>::max();
  ASSERT_TRUE(store->add(record));
  EXPECT_EQ(*store->find({}), std::vector<Record>{record});
  EXPECT_EQ(*store->add_all({record}), 0);
  // What JSON of PostgreSQL cannot hold does not keep the rest out.
  record.reason = std::string("zero \0 and \xff", 12);
  ASSERT_TRUE(store->add(record)) << "no UTF-8";
  record.reason = std::string("zero \0 end", 10), record.seed = 1, record.cost = 2;
  EXPECT_EQ(*store->add_all({record}), 1);
  EXPECT_EQ(store->last({})->value().reason, "zero   end");
}

TEST(PostgresStore, ManyRecordsGoInPieces) {
  const auto store = *open_postgres_store(new_fleet());
  std::vector<Record> all;
  for (int i = 0; i < 4500; ++i) all.push_back(sample_record(i));
  Workloads workloads;
  for (int i = 0; i < 2500; ++i) workloads[fmt::format("k{:05}", i)] = "func";
  EXPECT_EQ(*store->add_all(all, workloads), 4500);
  EXPECT_EQ(*store->find({}), all);
  int64_t seen = 0;
  ASSERT_TRUE(store->each_workload([&](const std::string&, const std::string&) { ++seen; }));
  EXPECT_EQ(seen, 2500);
}

TEST(PostgresStore, SeveralWritersLoseNothing) {
  const std::string url = new_fleet();
  std::vector<std::thread> threads;
  std::atomic<int64_t> added = 0;
  for (int writer = 0; writer < 4; ++writer)
    threads.emplace_back([&, writer] {
      const auto store = *open_postgres_store(url);
      for (int round = 0; round < 10; ++round) {
        std::vector<Record> batch;  // halves of neighbours' batches, in another order
        for (int i = 0; i < 40; ++i) batch.push_back(sample_record(round * 40 + i));
        if (writer % 2 == 1) std::reverse(batch.begin(), batch.end());
        const auto done = store->add_all(batch);
        ASSERT_TRUE(done) << to_string(done.error());
        added += *done;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added, 400);
  EXPECT_EQ((*open_postgres_store(url).value()->count({})), 400);
}

TEST(PostgresStore, AConnectionThatIsLostIsMadeAnew) {
  const std::string url = new_fleet();
  const auto store = *open_postgres_store(url);
  const auto cut = [&] {
    ASSERT_TRUE(connect(postgres::test_server().server->url())
                    ->query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname "
                            "LIKE 'test_%'"));
  };
  ASSERT_TRUE(store->add(sample_record(0)));
  cut();
  EXPECT_EQ(*store->count({}), 1);
  cut();
  EXPECT_EQ(*store->add_all({sample_record(0), sample_record(1)}), 1);
  cut();
  EXPECT_EQ(store->find({})->size(), 2u);
}

TEST(PostgresStore, AServerThatIsGoneIsUnreachable) {
  postgres::TestServer server;
  const std::string url = server.server->url();
  ASSERT_TRUE(fleet::migrate(*connect(url)));
  const auto store = *open_postgres_store(url);
  ASSERT_TRUE(store->add(sample_record(0)));
  server.server->kill();
  const Status added = store->add(sample_record(1));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, ErrorKind::Unreachable);
  EXPECT_EQ(store->count({}).error().kind, ErrorKind::Unreachable);
  const auto again = postgres::PrivateServer::start(server.server->folder());
  ASSERT_TRUE(again) << to_string(again.error());
  ASSERT_TRUE(store->add(sample_record(1)));
  EXPECT_EQ(*store->find({}), (std::vector<Record>{sample_record(0), sample_record(1)}))
      << "what was acknowledged is there after a crash";
}

TEST(PostgresStore, WhatIsNoFleetIsRefused) {
  const auto none = open_postgres_store(postgres::new_database());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Unreachable);
  EXPECT_THAT(none.error().what, HasSubstr("but has no fleet"));
  const std::string url = new_fleet();
  ASSERT_TRUE(connect(url)->execute_script("UPDATE fleet.meta SET version = 0"));
  const auto old = open_postgres_store(url);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().kind, ErrorKind::Package);
  ASSERT_TRUE(
      connect(url)->execute_script("UPDATE fleet.meta SET version = 99, min_program = '77'"));
  const auto newer = open_postgres_store(url);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().kind, ErrorKind::Package);
  EXPECT_THAT(newer.error().fix, HasSubstr("77"));
}

}  // namespace
}  // namespace tilewright::records
