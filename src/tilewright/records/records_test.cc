// What records are without any store: old ones, lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/records/grouped_adds.h"
#include "tilewright/records/lines.h"

namespace tilewright::records {
namespace {

using ::testing::HasSubstr;

TEST(OldRecords, SayTheirKindByOtherFields) {
  EXPECT_EQ(old_kind("rule", ""), "rule");
  EXPECT_EQ(old_kind("ours", "constructive: rows=4"), "schedule");
  EXPECT_EQ(old_kind("ours", "algorithm: rows=4"), "schedule") << "a space may have any name";
  EXPECT_EQ(old_kind("race", "constructive: rows=4"), "race");
  EXPECT_EQ(old_kind("race", ""), "race");
  EXPECT_EQ(old_kind("race", "algorithm: winograd 4"), "algorithm");
}

TEST(OldRecords, NameTheirMachineInTheTarget) {
  EXPECT_EQ(old_machine("cpu:znver4@1a2b3c4d:2"), "1a2b3c4d");
  EXPECT_EQ(old_machine("cpu:znver4:2"), "");
  EXPECT_EQ(old_machine("cpu:x86-64-v3:16"), "");
  EXPECT_EQ(old_machine("cuda-sm_90a:NVIDIA H200"), "NVIDIA H200");
  EXPECT_EQ(old_machine("opencl:cpu-znver4: a @ b"), "cpu-znver4: a @ b");
  EXPECT_EQ(old_machine("vta:0123456789ab"), "");
  EXPECT_EQ(old_machine("opencl"), "");
  EXPECT_EQ(old_machine(""), "");
}

TEST(OldRecords, OfSimulatorsCountCycles) {
  EXPECT_EQ(old_unit("vta:0123456789ab"), "cycles");
  EXPECT_EQ(old_unit("cpu:znver4:2"), "ns");
  EXPECT_EQ(old_unit("cuda-sm_90a:NVIDIA H200"), "ns");
}

/// Programs that know fewer fields read these lines, too, as long as the version stays and every
/// field of theirs is there.
TEST(Lines, HaveAllFieldsOfTheFirstFormat) {
  EXPECT_EQ(lines_header(), "{\"format\":\"tilewright-records\",\"v\":1}\n");
  const std::string line = line_of({});
  for (const char* name :
       {"workload", "name", "target", "compiler", "point", "schedule", "outcome", "reason", "cost",
        "least", "spread", "readings", "searcher", "seed", "when"})
    EXPECT_THAT(line, HasSubstr(std::string("\"") + name + "\":"));
  EXPECT_EQ(workload_line("k", "a\nb"), "{\"workload\":\"k\",\"func\":\"a\\nb\"}\n");
}

/// A store whose disk is slow; time passes nowhere else.
class SlowStore final : public Store {
 public:
  explicit SlowStore(double seconds) : takes_(seconds) {}
  Result<int64_t> add_all(const std::vector<Record>& records, const Workloads&) override {
    if (full) return fail(ErrorKind::Io, "the disk is full");
    if (away) {
      now += passes;
      return fail(ErrorKind::Unreachable, "nobody answers");
    }
    now += takes_, waited += takes_;
    ++commits;
    rows += static_cast<int64_t>(records.size());
    return static_cast<int64_t>(records.size());
  }
  Result<std::string> workload(const std::string& key) const override { return key; }
  Status each_workload(
      const std::function<void(const std::string&, const std::string&)>&) const override {
    return {};
  }
  Status each(const RecordFilter&, const std::function<void(const Record&)>&) const override {
    return {};
  }
  Result<int64_t> count(const RecordFilter&) const override { return rows; }
  Result<std::optional<Record>> best(const RecordFilter&) const override {
    return std::optional<Record>();
  }
  Result<std::optional<Record>> last(const RecordFilter&) const override {
    return std::optional<Record>();
  }
  Result<int64_t> prune(int) override { return 0; }

  double now = 0, waited = 0;
  int commits = 0;
  int64_t rows = 0;
  bool full = false, away = false;
  double passes = 0;  ///< until it is clear that nobody answers

 private:
  double takes_;
};

TEST(GroupedAdds, WaitForTheDiskOnePercentOfTheTime) {
  const auto store = std::make_shared<SlowStore>(0.005);
  {
    GroupedAdds adds(store, [&] { return store->now; });
    for (int batch = 0; batch < 1000; ++batch) {
      store->now += 0.01;
      ASSERT_TRUE(adds.add({Record(), Record()}));
      if (batch == 0) {
        EXPECT_EQ(store->rows, 2) << "the first is there at once";
      }
    }
    EXPECT_LT(store->waited, 0.011 * store->now);
    EXPECT_GT(store->commits, 10);
    EXPECT_LT(store->rows, 2000);
  }
  EXPECT_EQ(store->rows, 2000) << "the rest comes at the end";
}

TEST(GroupedAdds, AreAtOnceWhereTheyAreRare) {
  const auto store = std::make_shared<SlowStore>(0.005);
  GroupedAdds adds(store, [&] { return store->now; });
  for (int batch = 1; batch <= 10; ++batch) {
    store->now += 0.6;
    ASSERT_TRUE(adds.add({Record()}));
    EXPECT_EQ(store->rows, batch);
  }
}

TEST(GroupedAdds, NoneWaitsMuchLongerThanTwoSeconds) {
  const auto store = std::make_shared<SlowStore>(1);
  GroupedAdds adds(store, [&] { return store->now; });
  for (int batch = 1; batch <= 10; ++batch) {
    store->now += 2.1;
    ASSERT_TRUE(adds.add({Record()}));
    EXPECT_EQ(store->rows, batch);
  }
}

TEST(GroupedAdds, TellOfErrorsAndTryAgain) {
  const auto store = std::make_shared<SlowStore>(0.005);
  GroupedAdds adds(store, [&] { return store->now; });
  store->full = true;
  EXPECT_FALSE(adds.add({Record()}));
  EXPECT_FALSE(adds.flush());
  store->full = false;
  EXPECT_TRUE(adds.flush());
  EXPECT_EQ(store->rows, 1);
  EXPECT_TRUE(adds.flush());
  EXPECT_EQ(store->commits, 1) << "nothing waits";
}

TEST(GroupedAdds, KeepWhatAServerThatIsAwayDoesNotTake) {
  const auto store = std::make_shared<SlowStore>(0.005);
  std::vector<double> told;
  size_t waited_for = 0;
  GroupedAdds adds(
      store, [&] { return store->now; },
      [&](double seconds, const Error&, bool waits) {
        told.push_back(seconds);
        waited_for += waits;
        if (told.size() == 8) store->away = false;  // it comes back while `flush` waits
      });
  store->away = true;
  for (int batch = 0; batch < 10; ++batch) {
    EXPECT_TRUE(adds.add({Record()})) << "measuring goes on";
    store->now += 1;
  }
  EXPECT_EQ(store->rows, 0);
  EXPECT_GE(told.size(), 3u);
  EXPECT_LE(told.size(), 6u) << "it is asked every two seconds";
  EXPECT_GT(told.back(), 5);
  EXPECT_TRUE(adds.settle()) << "nor does this wait";
  const size_t before = told.size();
  EXPECT_EQ(waited_for, 0u);
  EXPECT_TRUE(adds.flush());
  EXPECT_EQ(waited_for, told.size() - before);
  EXPECT_EQ(told.size(), 8u);
  EXPECT_GT(told.size(), before);
  EXPECT_EQ(store->rows, 10);
  // One that stays away is an error in the end.
  store->away = true;
  EXPECT_TRUE(adds.add({Record()}));
  store->passes = 250;
  const Status lost = adds.flush();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, ErrorKind::Unreachable);
}

}  // namespace
}  // namespace tilewright::records
