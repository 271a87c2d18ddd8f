#include "tilewright/accel/vta/uop_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

using Kernels = std::vector<std::vector<Uop>>;
using Uses = std::vector<UopUse>;

Kernels kernels_of(const std::vector<uint32_t>& sizes) {
  Kernels kernels;
  for (uint32_t k = 0; k < sizes.size(); ++k) {
    kernels.emplace_back(sizes[k]);
    for (uint32_t i = 0; i < sizes[k]; ++i) kernels[k][i] = {k, i, 0};
  }
  return kernels;
}

/// Runs one after the other; every tenth instruction needs no micro-ops.
Uses uses_of(const std::vector<size_t>& sequence) {
  Uses uses;
  size_t insn = 1;
  for (const size_t kernel : sequence) {
    uses.push_back({insn, kernel});
    insn += insn % 10 == 9 ? 2 : 1;
  }
  return uses;
}

/// Does what the plan says, word by word: each instruction finds its kernel where it is said to be.
void expect_valid(const UopPlan& plan, const Kernels& kernels, const Uses& uses, uint32_t depth) {
  std::vector<Uop> memory(depth, Uop{UINT32_MAX, 0, 0});
  ASSERT_EQ(plan.begin.size(), uses.size());
  size_t next = 0;
  for (size_t u = 0; u < uses.size(); ++u) {
    for (; next < plan.loads.size() && plan.loads[next].before <= uses[u].insn; ++next) {
      const UopLoad& load = plan.loads[next];
      EXPECT_FALSE(load.kernels.empty());
      uint32_t at = load.begin;
      for (const size_t kernel : load.kernels)
        for (const Uop& uop : kernels[kernel]) {
          ASSERT_LT(at, depth);
          memory[at++] = uop;
        }
    }
    const std::vector<Uop>& kernel = kernels[uses[u].kernel];
    ASSERT_LE(plan.begin[u] + kernel.size(), depth);
    ASSERT_TRUE(std::equal(kernel.begin(), kernel.end(), memory.begin() + plan.begin[u]))
        << "use " << u;
  }
  EXPECT_EQ(next, plan.loads.size()) << "loads after the last use";
}

/// The least number of parts of the stream whose kernels fit together, by trying all cuts.
size_t least_parts(const Kernels& kernels, const Uses& uses, uint32_t depth) {
  std::vector<size_t> least(uses.size() + 1, uses.size());
  least[0] = 0;
  for (size_t begin = 0; begin < uses.size(); ++begin)
    for (size_t end = begin + 1; end <= uses.size(); ++end) {
      std::set<size_t> seen;
      size_t room = 0;
      for (size_t u = begin; u < end; ++u)
        if (seen.insert(uses[u].kernel).second) room += kernels[uses[u].kernel].size();
      if (room <= depth) least[end] = std::min(least[end], least[begin] + 1);
    }
  return least.back();
}

struct Case {
  uint32_t depth = 0;
  Kernels kernels;
  Uses uses;
  std::vector<size_t> spans;
};

/// Layers with kernels of their own and some that they share.
Case random_case(Rng& rng) {
  Case c;
  c.depth = static_cast<uint32_t>(rng.between(8, 60));
  const int64_t shared = rng.between(1, 4);
  std::vector<uint32_t> sizes;
  std::vector<size_t> sequence, begins;
  const auto fresh = [&] {
    const uint32_t most = rng.below(4) == 0 ? c.depth : std::max(2u, c.depth / 3);
    sizes.push_back(static_cast<uint32_t>(rng.between(1, most)));
    return sizes.size() - 1;
  };
  for (int64_t k = 0; k < shared; ++k) fresh();
  for (int64_t layer = rng.between(1, 6); layer > 0; --layer) {
    begins.push_back(sequence.size());
    std::vector<size_t> own;
    for (int64_t k = rng.between(0, 4); k > 0; --k) own.push_back(fresh());
    for (int64_t u = rng.between(1, 12); u > 0; --u)
      sequence.push_back(own.empty() || rng.below(3) == 0
                             ? static_cast<size_t>(rng.below(static_cast<uint64_t>(shared)))
                             : own[static_cast<size_t>(rng.below(own.size()))]);
  }
  c.kernels = kernels_of(sizes);
  c.uses = uses_of(sequence);
  for (const size_t begin : begins) c.spans.push_back(begin == 0 ? 0 : c.uses[begin - 1].insn + 1);
  return c;
}

TEST(UopPlanSlow, RandomPlansAreValidAndLoadNoMoreThanNeeded) {
  Rng rng(11);
  size_t several = 0, fewer = 0;
  for (int i = 0; i < 600; ++i) {
    SCOPED_TRACE(i);
    const Case c = random_case(rng);
    const UopPlan merged = plan_merged(c.kernels, c.uses, c.spans, c.depth);
    const UopPlan free = plan_merged(c.kernels, c.uses, {}, c.depth);
    const UopPlan single = plan_one_by_one(c.kernels, c.uses, c.depth);
    for (const UopPlan* plan : {&merged, &free, &single})
      expect_valid(*plan, c.kernels, c.uses, c.depth);
    EXPECT_LE(merged.loads.size(), single.loads.size());
    EXPECT_LE(free.loads.size(), least_parts(c.kernels, c.uses, c.depth));
    several += merged.loads.size() > 1;
    fewer += merged.loads.size() < single.loads.size();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(several, 100u);
  EXPECT_GT(fewer, 300u);
}

TEST(UopPlan, OneLoadInOrderOfFirstUseIfAllFit) {
  const Kernels kernels = kernels_of({3, 1, 4});
  const UopPlan plan = plan_merged(kernels, uses_of({2, 0, 2, 1, 0}), {0, 3}, 8);
  ASSERT_EQ(plan.loads.size(), 1u);
  EXPECT_EQ(plan.loads[0].before, 1u);
  EXPECT_EQ(plan.loads[0].begin, 0u);
  EXPECT_EQ(plan.loads[0].kernels, (std::vector<size_t>{2, 0, 1}));
  EXPECT_EQ(plan.begin, (std::vector<uint32_t>{0, 4, 0, 7, 4}));
}

TEST(UopPlan, CutsBeforeALayerThatFits) {
  const Kernels kernels = kernels_of({4, 3, 3, 3});
  const Uses uses = uses_of({0, 0, 1, 2, 3, 2, 1});
  const UopPlan plan = plan_merged(kernels, uses, {0, uses[2].insn}, 10);
  ASSERT_EQ(plan.loads.size(), 2u);
  EXPECT_EQ(plan.loads[1].before, uses[2].insn);
  EXPECT_EQ(plan.loads[1].kernels, (std::vector<size_t>{1, 2, 3}));
  // A layer that does not fit is cut where it must be: the first part takes what it can.
  const UopPlan large = plan_merged(kernels, uses, {0, uses[2].insn}, 8);
  ASSERT_EQ(large.loads.size(), 3u);
  EXPECT_EQ(large.loads[0].kernels, (std::vector<size_t>{0, 1}));
}

TEST(UopPlan, KeepsWhatIsStillNeededIfTheRestFitsBesideIt) {
  const Kernels kernels = kernels_of({2, 6, 5});
  const UopPlan plan = plan_merged(kernels, uses_of({0, 1, 0, 2}), {}, 10);
  ASSERT_EQ(plan.loads.size(), 2u);
  EXPECT_EQ(plan.loads[1].kernels, (std::vector<size_t>{2}));
  const UopPlan later = plan_merged(kernels, uses_of({0, 1, 0, 2, 0}), {0, 3}, 10);
  ASSERT_EQ(later.loads.size(), 2u);
  EXPECT_EQ(later.loads[1].kernels, (std::vector<size_t>{2})) << "kernel 0 stays";
  EXPECT_EQ(later.loads[1].begin, 2u);
  EXPECT_EQ(later.begin.back(), 0u);
  // Kernel 1 lies in the middle: what is left on its sides is too small for the new one.
  const Kernels middle = kernels_of({4, 2, 4, 8});
  const UopPlan anew = plan_merged(middle, uses_of({0, 1, 2, 1, 3, 1}), {0, 4}, 10);
  ASSERT_EQ(anew.loads.size(), 2u);
  EXPECT_EQ(anew.loads[1].kernels, (std::vector<size_t>{1, 3}));
}

TEST(UopPlan, NothingIsAPlanToo) {
  for (const UopPlan& plan : {plan_merged({}, {}, {0}, 4), plan_one_by_one({}, {}, 4)}) {
    EXPECT_TRUE(plan.loads.empty());
    EXPECT_TRUE(plan.begin.empty());
  }
}

}  // namespace
}  // namespace tilewright::vta
