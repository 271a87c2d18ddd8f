// Random nests: the instructions run exactly the steps of the loops, equal destinations apart.
#include "tilewright/codegen/vta/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tilewright::codegen::vta_code {
namespace {

using Step = std::array<int64_t, 3>;

std::vector<Step> steps_of(const ConcreteNest& nest) {
  std::vector<Step> out;
  const int64_t total = nest.iterations();
  for (int64_t t = 0; t < total; ++t) {
    int64_t rest = t;
    Step step{};
    for (size_t f = 0; f < nest.forms.size(); ++f) step[f] = nest.forms[f].c;
    for (size_t i = 0; i < nest.size(); ++i) {
      for (size_t f = 0; f < nest.forms.size(); ++f)
        step[f] += nest.forms[f].k[i] * (rest % nest.extents[i]);
      rest /= nest.extents[i];
    }
    out.push_back(step);
  }
  return out;
}

std::vector<Step> steps_of(const std::vector<vta::Uop>& uops, const vta::Loops& l, bool gemm) {
  std::vector<Step> out;
  for (int64_t o = 0; o < l.outer; ++o)
    for (int64_t i = 0; i < l.inner; ++i)
      for (const vta::Uop& u : uops)
        out.push_back({u.dst + o * l.dst_outer + i * l.dst_inner,
                       u.src + o * l.src_outer + i * l.src_inner,
                       gemm ? u.wgt + o * l.wgt_outer + i * l.wgt_inner : 0});
  return out;
}

ConcreteNest random_nest(std::mt19937& random, bool gemm) {
  auto pick = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  };
  ConcreteNest nest;
  const auto n = static_cast<size_t>(pick(0, 5));
  for (size_t i = 0; i < n; ++i) nest.extents.push_back(pick(1, 5));
  nest.forms.resize(gemm ? 3 : 2);
  nest.addresses = nest.forms.size();
  for (Form& f : nest.forms) {
    f.c = 400;
    for (size_t i = 0; i < n; ++i) f.k[i] = pick(0, 2) == 0 ? 0 : pick(-9, 20);
  }
  return nest;
}

TEST(StepLoops, RunEveryStepOnceWithEqualDestinationsApart) {
  std::mt19937 random(3);
  const vta::Config config;
  StepLoops loops(config);
  size_t instructions = 0, steps = 0;
  for (int round = 0; round < 1500; ++round) {
    const bool gemm = round % 2 == 0;
    const ConcreteNest nest = random_nest(random, gemm);
    std::vector<Step> got;
    auto issue = [&](const std::vector<vta::Uop>& uops, const vta::Loops& l, bool replace) {
      EXPECT_FALSE(replace);
      const std::vector<Step> part = steps_of(uops, l, gemm);
      for (size_t t = 0; t < part.size(); ++t)
        for (size_t d = 1; d < 3 && t + d < part.size(); ++d)
          EXPECT_NE(part[t][0], part[t + d][0]) << "round " << round;
      got.insert(got.end(), part.begin(), part.end());
      ++instructions;
      return Status{};
    };
    ASSERT_TRUE(loops.run({nest, gemm, false, -1}, issue));
    std::vector<Step> expected = steps_of(nest);
    std::sort(expected.begin(), expected.end());
    std::sort(got.begin(), got.end());
    ASSERT_EQ(got, expected) << "round " << round;
    steps += expected.size();
  }
  EXPECT_LT(instructions * 4, steps);  // or every step would be an instruction of its own
}

TEST(StepLoops, ReplaceOnlyWhatIsMetFirst) {
  std::mt19937 random(5);
  const vta::Config config;
  StepLoops loops(config);
  for (int round = 0; round < 300; ++round) {
    ConcreteNest nest = random_nest(random, true);
    const int64_t rows = 2 + round % 9;
    for (Form& f : nest.forms) f.k = {};
    nest.extents = {rows, 1 + round % 4};
    nest.forms[0].k = {1, 0};
    nest.forms[1].k = {2, 1};
    nest.forms[2].k = {0, 3};
    std::multiset<Step> got;
    std::set<int64_t> met;
    auto issue = [&](const std::vector<vta::Uop>& uops, const vta::Loops& l, bool replace) {
      const std::vector<Step> part = steps_of(uops, l, true);
      const size_t first = replace ? part.size() / l.outer : 0;
      for (size_t t = 0; t < part.size(); ++t) {
        EXPECT_EQ(met.insert(part[t][0]).second, t < first) << "round " << round;
        got.insert(part[t]);
      }
      return Status{};
    };
    ASSERT_TRUE(loops.run({nest, true, true, 1}, issue));
    const std::vector<Step> expected = steps_of(nest);
    EXPECT_EQ(got, std::multiset<Step>(expected.begin(), expected.end()));
  }
}

TEST(StepLoops, TakeFewMicroOps) {
  ConcreteNest
      nest;  // a 3x3 convolution: channels, rows, columns; block, kernel row, kernel column
  nest.extents = {4, 14, 14, 2, 3, 3};
  nest.addresses = 3;
  nest.forms.resize(3);
  nest.forms[0].k = {196, 14, 1, 0, 0, 0};
  nest.forms[1].k = {0, 16, 1, 256, 16, 1};
  nest.forms[2].k = {18, 0, 0, 9, 3, 1};
  size_t most = 0, count = 0;
  StepLoops loops((vta::Config()));
  ASSERT_TRUE(loops.run({nest, true, false, -1},
                        [&](const std::vector<vta::Uop>& uops, const vta::Loops&, bool) {
                          most = std::max(most, uops.size());
                          ++count;
                          return Status{};
                        }));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(most, 4u * 2 * 3 * 3);
}

}  // namespace
}  // namespace tilewright::codegen::vta_code
