#include "tilewright/records/records.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright::records {
namespace {

using ::testing::HasSubstr;

Record record(int i) {
  Record r;
  r.workload = fmt::format("sha256:{}", i % 3);
  r.name = "conv\twith \"quotes\" and\nlines";
  r.target = i % 2 == 0 ? "cpu:znver4:2" : "cpu:x86-64-v3:2";
  r.compiler = "tilewright 0.1";
  r.schedule = fmt::format("split(loop=h, factor={})", i);
  r.outcome = i % 5 == 4 ? "timeout" : "ok";
  r.reason = i % 5 == 4 ? "1000 ms" : "";
  r.cost = 1000.5 - i;
  r.readings = 7;
  r.seed = -1 - i;
  r.when = fmt::format("2026-11-20T10:15:{:02}Z", i % 60);
  return r;
}

struct Fixture : testing::Test {
  TemporaryFolder folder = *TemporaryFolder::create();
  std::string path = folder.path() + "/deep/records.sqlite";
};

using Records = Fixture;

TEST_F(Records, ComeBackAsTheyWere) {
  std::vector<Record> all;
  for (int i = 0; i < 20; ++i) all.push_back(record(i));
  {
    RecordStore store = *RecordStore::open(path);
    for (const Record& r : all) ASSERT_TRUE(store.add(r));
    ASSERT_TRUE(store.add(all[3]));  // the same measurement again
  }
  RecordStore store = *RecordStore::open(path);
  EXPECT_EQ(*store.find({}), all);
  RecordFilter filter{.workload = "sha256:1", .target = "cpu:znver4:2"};
  // 4, 10 and 16 are even and leave 1; 4 timed out.
  EXPECT_EQ(store.best(filter)->value().schedule, "split(loop=h, factor=16)");
  EXPECT_EQ(*store.count(filter), 3);
  EXPECT_FALSE(store.best({.workload = "sha256:9"})->has_value());
  EXPECT_EQ(*store.prune(1), 20 - 6);
  EXPECT_EQ(store.best(filter)->value().schedule, "split(loop=h, factor=16)");
}

TEST_F(Records, ChooseTheWinnerOfTheLastRace) {
  RecordStore store = *RecordStore::open(path);
  const RecordFilter filter{.workload = "sha256:0", .target = "cpu:znver4:2"};
  auto add = [&](const std::string& searcher, double cost, const std::string& schedule) {
    Record r = record(0);
    r.searcher = searcher;
    r.cost = cost;
    r.schedule = schedule;
    ASSERT_TRUE(store.add(r));
  };
  EXPECT_FALSE(store.chosen(filter)->has_value());
  add("rule", 100, "rule");
  add("ours", 98, "a little faster, perhaps");
  EXPECT_FALSE(store.chosen(filter)->has_value());  // no more than readings differ anyway
  add("ours", 90, "faster");
  EXPECT_EQ(store.chosen(filter)->value().schedule, "faster");
  add("race", 95, "won");
  add("ours", 10, "a lucky reading");
  EXPECT_EQ(store.chosen(filter)->value().schedule, "won");
  add("race", 97, "won later");
  EXPECT_EQ(store.chosen(filter)->value().schedule, "won later");
  EXPECT_EQ(*store.prune(1), 3);  // the lucky reading stays, and what decisions rest on
  EXPECT_EQ(store.chosen(filter)->value().schedule, "won later");
  EXPECT_EQ(store.best(filter)->value().schedule, "a lucky reading");
  RecordStore other = *RecordStore::open(":memory:");
  EXPECT_EQ(other.merge(store)->added, 3);
  EXPECT_EQ(other.merge(store)->known, 3);
  EXPECT_EQ(other.chosen(filter)->value().schedule, "won later");
}

TEST_F(Records, TravelAsLines) {
  const std::string func = "func f() {\n}";
  Record own = record(1);
  own.workload = workload_key(func);
  RecordStore from = *RecordStore::open(path);
  ASSERT_TRUE(from.add_all({record(0), own}));
  ASSERT_TRUE(from.add_workload(own.workload, func));
  const std::string lines = *from.export_lines({});
  RecordStore to = *RecordStore::open(folder.path() + "/other.sqlite");
  ASSERT_TRUE(to.add(record(0)));
  const RecordStore::Imported counts = *to.import_lines(lines + "{\"workload\": 3\nnot json\n");
  EXPECT_EQ(counts.added, 1);
  EXPECT_EQ(counts.known, 1);
  EXPECT_EQ(counts.broken, 2);
  EXPECT_THAT(counts.first_problem, HasSubstr("line 5"));
  EXPECT_EQ(*to.workload(own.workload), func);
  EXPECT_EQ(*to.find({}), (std::vector<Record>{record(0), own}));
}

TEST_F(Records, RefuseWhatIsNoStore) {
  EXPECT_FALSE(RecordStore::open(path)->import_lines("hello\n"));
  ASSERT_TRUE(write_file(path + ".txt", "this is a text file, not a data base, and long enough"));
  const auto opened = RecordStore::open(path + ".txt");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::Io);
  EXPECT_FALSE(RecordStore::open("/proc/none/records.sqlite"));
  EXPECT_FALSE(RecordStore::open(path)->workload("sha256:0"));
}

TEST_F(Records, A6_SurviveAKilledWriter) {
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(RecordStore::open(path));
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      RecordStore store = *RecordStore::open(path);
      for (int i = 0;; ++i) {
        if (!store.add(record(round * 100000 + i))) _exit(1);
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
    auto again = RecordStore::open(path);
    ASSERT_TRUE(again) << to_string(again.error());
    const auto found = again->find({});
    ASSERT_TRUE(found) << to_string(found.error());
    for (const Record& r : *found) schedules.insert(r.schedule);
    for (int i = 0; i <= added; ++i)
      ASSERT_TRUE(schedules.contains(record(round * 100000 + i).schedule)) << round << " " << i;
  }
}

TEST_F(Records, A5_OpenQuicklyWhenMany) {
  std::vector<Record> all;
  for (int i = 0; i < 100000; ++i) all.push_back(record(i));
  ASSERT_TRUE(RecordStore::open(path)->add_all(all));
  const auto start = std::chrono::steady_clock::now();
  RecordStore store = *RecordStore::open(path);
  EXPECT_EQ(store.best({.workload = "sha256:0", .target = "cpu:znver4:2"})->value().cost,
            1000.5 - 99996);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 0.5);
}

}  // namespace
}  // namespace tilewright::records
