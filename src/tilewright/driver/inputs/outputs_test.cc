#include "tilewright/driver/inputs/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/driver/inputs/npz.h"
#include "tilewright/driver/verify/process.h"

namespace tilewright::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PlanOutputs, OneFileForOneOutput) {
  const auto plan = plan_outputs({{"y.npy"}, ""}, {"y"});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->files, ElementsAre("y.npy"));
  EXPECT_EQ(plan->archive, "");
}

TEST(PlanOutputs, SeveralOutputsByNamePositionOrTogether) {
  const auto plan = plan_outputs({{"b=q.npy", "0=p.npy", "all.npz"}, ""}, {"a", "b"});
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_THAT(plan->files, ElementsAre("p.npy", "q.npy"));
  EXPECT_EQ(plan->archive, "all.npz");
}

TEST(PlanOutputs, NeverAFolderThatWasNotAskedFor) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const auto two = plan_outputs({{folder->file("y.npy")}, ""}, {"a", "b"});
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().fix, HasSubstr("--output-dir"));
  EXPECT_FALSE(plan_outputs({{folder->file("out")}, ""}, {"a"}));
  EXPECT_FALSE(plan_outputs({{folder->file(".")}, ""}, {"a"}));
  EXPECT_FALSE(std::filesystem::exists(folder->file("y.npy")));
  const auto asked = plan_outputs({{}, folder->file("out")}, {"a/b", "a_b"});
  ASSERT_TRUE(asked);
  EXPECT_THAT(asked->files, ElementsAre(folder->file("out/a_b.npy"), folder->file("out/_a_b.npy")));
  EXPECT_TRUE(std::filesystem::is_directory(folder->file("out")));
}

TEST(PlanOutputs, UnknownOutputsNameTheNearest) {
  const auto plan = plan_outputs({{"logit=y.npy"}, ""}, {"logits", "other"});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().fix, HasSubstr("'logits'"));
  EXPECT_FALSE(plan_outputs({{"2=y.npy"}, ""}, {"a", "b"}));
}

TEST(WriteOutputs, AnArchiveHoldsThemAll) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->file("all.npz");
  const Array a = Array::scalar(DType::F32, 2), b = Array::scalar(DType::I64, 3);
  ASSERT_TRUE(write_outputs({{"", ""}, path}, {{"a", a}, {"b", b}}));
  const auto arrays = read_npz(path);
  ASSERT_TRUE(arrays) << to_string(arrays.error());
  EXPECT_TRUE(identical(arrays->at("a"), a));
  EXPECT_TRUE(identical(arrays->at("b"), b));
}

TEST(TopScores, HighestFirstPerRowWithNanLast) {
  const std::vector<double> values = {1, 5, std::nan(""), 3, 9, 2, 9, 0};
  const auto scores = top_scores("y", Array::of(DType::F32, values).reshaped({2, 4, 1, 1}), 2);
  ASSERT_TRUE(scores);
  std::vector<int64_t> classes;
  for (const Score& score : *scores) classes.push_back(score.index);
  EXPECT_THAT(classes, ElementsAre(1, 3, 0, 2));
  EXPECT_EQ(scores->back().row, 1);
  EXPECT_FALSE(top_scores("y", Array(DType::F32, {2, 2, 2}), 2));
  EXPECT_EQ(top_scores("y", Array(DType::F32, {1, 3}), 5)->size(), 3u);
}

TEST(Labels, OnePerLine) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_file(folder->file("l.txt"), "cat\r\n\ndog\n\n"));
  EXPECT_THAT(*read_labels(folder->file("l.txt")), ElementsAre("cat", "", "dog"));
  ASSERT_TRUE(write_file(folder->file("l.txt"), "\n"));
  EXPECT_FALSE(read_labels(folder->file("l.txt")));
}

}  // namespace
}  // namespace tilewright::driver
