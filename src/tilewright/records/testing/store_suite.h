// Tests of the interface Store, for every form of it. A test program includes this file once and
// names its forms:
//
//   INSTANTIATE_TEST_SUITE_P(Files, StoreSuite, testing::Values(StoreForm{"file", open_in}), name);
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "tilewright/base/process.h"
#include "tilewright/records/lines.h"
#include "tilewright/records/workload.h"

namespace tilewright::records {

/// In memory where the system has a file system there: commits wait for a disk, which tests beside
/// these keep busy.
inline TemporaryFolder quick_folder() {
  Result<TemporaryFolder> made = TemporaryFolder::create("/dev/shm");
  return made ? *std::move(made) : *TemporaryFolder::create();
}

/// A way to keep records.
struct StoreForm {
  std::string name;
  /// A store without records. `folder`: of this test alone; `name`: another one, another store.
  std::function<Result<std::shared_ptr<Store>>(const std::string& folder, const std::string& name)>
      make;
};
inline void PrintTo(const StoreForm& form, std::ostream* out) { *out << form.name; }
inline std::string form_name(const testing::TestParamInfo<StoreForm>& form) {
  return form.param.name;
}

/// Valid unless `i` leaves 4 by 5; the cheaper, the larger `i`.
inline Record sample_record(int i) {
  Record r;
  r.workload = fmt::format("sha256:{}", i % 3);
  r.name = "conv\twith \"quotes\" and\nlines";
  r.kind = kScheduleKind;
  r.target = i % 2 == 0 ? "cpu:znver4@1a2b3c4d:2" : "cpu:x86-64-v3:2";
  r.machine = i % 2 == 0 ? "1a2b3c4d" : "";
  r.compiler = "tilewright 0.1";
  r.schedule = fmt::format("split(loop=h, factor={})", i);
  r.outcome = i % 5 == 4 ? "timeout" : "ok";
  r.reason = i % 5 == 4 ? "1000 ms" : "";
  r.cost = 1000.5 - i;
  r.unit = "ns";
  r.readings = 7;
  r.searcher = "ours";
  r.seed = -1 - i;
  r.when = fmt::format("2026-11-20T10:15:{:02}Z", i % 60);
  return r;
}

/// A line as programs without kinds wrote it.
inline std::string old_line(const Record& record) {
  std::string line = line_of(record);
  for (const std::string& member : {fmt::format("\"kind\":\"{}\",", record.kind),
                                    fmt::format("\"machine\":\"{}\",", record.machine),
                                    fmt::format("\"unit\":\"{}\",", record.unit)})
    line.erase(line.find(member), member.size());
  return line;
}

class StoreSuite : public testing::TestWithParam<StoreForm> {
 protected:
  std::shared_ptr<Store> make(const std::string& name = "records") {
    auto made = GetParam().make(folder.path(), name);
    EXPECT_TRUE(made) << to_string(made.error());
    return *made;
  }
  TemporaryFolder folder = quick_folder();
};

TEST_P(StoreSuite, RecordsComeBackAsTheyWere) {
  const auto store = make();
  std::vector<Record> all;
  for (int i = 0; i < 20; ++i) all.push_back(sample_record(i));
  EXPECT_EQ(*store->add_all(all), 20);
  ASSERT_TRUE(store->add(all[3]));  // the same measurement again
  EXPECT_EQ(*store->add_all({all[4], sample_record(20), all[5]}), 1);
  all.push_back(sample_record(20));
  EXPECT_EQ(*store->find({}), all);
  EXPECT_EQ(*store->count({}), 21);
}

TEST_P(StoreSuite, FiltersLookAtEveryField) {
  const auto store = make();
  Record r = sample_record(0);
  r.kind = kRaceKind;
  ASSERT_TRUE(store->add_all({sample_record(0), sample_record(4), r}));
  EXPECT_EQ(*store->count({.workload = "sha256:0"}), 2);
  EXPECT_EQ(*store->count({.workload = "sha256:2"}), 0);
  EXPECT_EQ(*store->count({.target = "cpu:znver4@1a2b3c4d:2"}), 3);
  EXPECT_EQ(*store->count({.target = "cpu:znver4"}), 0);
  EXPECT_EQ(*store->count({.compiler = "tilewright 0.1"}), 3);
  EXPECT_EQ(*store->count({.compiler = "tilewright 0.2"}), 0);
  EXPECT_EQ(*store->count({.ok_only = true}), 2);
  EXPECT_EQ(*store->find({.kind = kRaceKind}), std::vector<Record>{r});
  EXPECT_EQ(*store->count({.workload = "sha256:0", .kind = kScheduleKind}), 1);
}

TEST_P(StoreSuite, BestAndLastAreValidRecords) {
  const auto store = make();
  for (const int i : {16, 10, 4}) ASSERT_TRUE(store->add(sample_record(i)));
  const RecordFilter filter{.workload = "sha256:1", .target = "cpu:znver4@1a2b3c4d:2"};
  EXPECT_EQ(*store->count(filter), 3);  // 4 timed out
  EXPECT_EQ(store->best(filter)->value(), sample_record(16));
  EXPECT_EQ(store->last(filter)->value(), sample_record(10));
  EXPECT_FALSE(store->best({.workload = "sha256:9"})->has_value());
  EXPECT_FALSE(store->last({.workload = "sha256:9"})->has_value());
}

TEST_P(StoreSuite, ChooseTheLastDecision) {
  const auto store = make();
  const RecordFilter filter{.workload = "sha256:0", .target = "cpu:znver4@1a2b3c4d:2"};
  auto add = [&](const char* kind, double cost, const std::string& schedule) {
    Record r = sample_record(0);
    r.kind = kind;
    r.cost = cost;
    r.schedule = schedule;
    ASSERT_TRUE(store->add(r));
  };
  EXPECT_FALSE(store->chosen(filter)->has_value());
  add(kRuleKind, 100, "rule");
  add(kScheduleKind, 98, "a little faster, perhaps");
  EXPECT_FALSE(store->chosen(filter)->has_value());  // no more than readings differ anyway
  add(kScheduleKind, 90, "faster");
  EXPECT_EQ(store->chosen(filter)->value().schedule, "faster");
  add(kRaceKind, 95, "won");
  add(kScheduleKind, 10, "a lucky reading");
  EXPECT_EQ(store->chosen(filter)->value().schedule, "won");
  add(kRaceKind, 97, "won later");
  EXPECT_EQ(store->chosen(filter)->value().schedule, "won later");
  EXPECT_EQ(*store->prune(1), 3);  // the lucky reading stays, and what decisions rest on
  EXPECT_EQ(store->chosen(filter)->value().schedule, "won later");
  EXPECT_EQ(store->best(filter)->value().schedule, "a lucky reading");
  EXPECT_EQ(store->find({.kind = kRuleKind})->size(), 1u);
  const auto other = make("other");
  EXPECT_EQ(merge(*other, *store)->added, 3);
  EXPECT_EQ(merge(*other, *store)->known, 3);
  EXPECT_EQ(other->chosen(filter)->value().schedule, "won later");
}

TEST_P(StoreSuite, AnAlgorithmIsADecision) {
  const auto store = make();
  Record slow = sample_record(0), fast = sample_record(0), cheap = sample_record(0);
  slow.kind = fast.kind = kAlgorithmKind;
  slow.point = "algorithm: winograd 4";
  fast.point = "algorithm: direct";
  slow.cost = 2 * fast.cost;
  cheap.cost = 1;
  ASSERT_TRUE(store->add_all({fast, slow, cheap}));
  const RecordFilter filter{.workload = "sha256:0"};
  EXPECT_EQ(store->chosen(filter)->value().point, "algorithm: winograd 4");
  EXPECT_EQ(*store->prune(1), 1);
  EXPECT_EQ(store->chosen(filter)->value().point, "algorithm: winograd 4");
}

TEST_P(StoreSuite, PruneKeepsTheCheapestOfEachWorkloadAndTarget) {
  const auto store = make();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(store->add(sample_record(i)));
  EXPECT_EQ(*store->prune(1), 20 - 6);
  const std::vector<Record> kept = *store->find({});
  for (const Record& left : kept)
    EXPECT_EQ(store->best({.workload = left.workload, .target = left.target})->value(), left);
  EXPECT_EQ(*store->prune(1), 0);
}

TEST_P(StoreSuite, WorkloadsComeBackInOrder) {
  const auto store = make();
  ASSERT_TRUE(store->add_all({}, {{"b", "func b"}, {"c", "func\nc"}}));
  ASSERT_TRUE(store->add_workload("a", "func a"));
  ASSERT_TRUE(store->add_workload("a", "func a"));
  EXPECT_EQ(*store->workload("c"), "func\nc");
  std::string seen;
  ASSERT_TRUE(store->each_workload(
      [&](const std::string& key, const std::string& func) { seen += key + "=" + func + ";"; }));
  EXPECT_EQ(seen, "a=func a;b=func b;c=func\nc;");
  const auto none = store->workload("d");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Package);
}

TEST_P(StoreSuite, TravelAsLines) {
  const std::string func = "func f() {\n}";
  Record own = sample_record(1);
  own.workload = workload_key(func);
  const auto from = make("from"), to = make("to");
  ASSERT_TRUE(from->add_all({sample_record(0), own}, {{own.workload, func}}));
  const std::string lines = *export_lines(*from, {});
  ASSERT_TRUE(to->add(sample_record(0)));
  const Imported counts = *import_lines(*to, lines + "{\"workload\": 3\nnot json\n");
  EXPECT_EQ(counts.added, 1);
  EXPECT_EQ(counts.known, 1);
  EXPECT_EQ(counts.broken, 2);
  EXPECT_THAT(counts.first_problem, testing::HasSubstr("line 5"));
  EXPECT_EQ(*to->workload(own.workload), func);
  EXPECT_EQ(*to->find({}), (std::vector<Record>{sample_record(0), own}));
  EXPECT_FALSE(import_lines(*to, "hello\n"));
}

TEST_P(StoreSuite, LinesOfOlderProgramsAreRead) {
  std::vector<Record> all = {sample_record(0), sample_record(1), sample_record(2)};
  all[1].kind = all[1].searcher = kRaceKind;
  all[2].kind = kAlgorithmKind;
  all[2].searcher = kRaceKind;
  all[2].point = "algorithm: direct";
  std::string lines = lines_header();
  for (const Record& record : all) lines += old_line(record);
  EXPECT_THAT(lines, testing::Not(testing::HasSubstr("kind")));
  const auto store = make();
  EXPECT_EQ(import_lines(*store, lines)->added, 3);
  EXPECT_EQ(*store->find({}), all);
  // What has a kind has the other two.
  std::string half = line_of(all[0]);
  half.replace(half.find("\"unit\""), 6, "\"sort\"");
  EXPECT_EQ(import_lines(*store, lines_header() + half)->broken, 1);
}

}  // namespace tilewright::records
