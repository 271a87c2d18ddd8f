#include "tilewright/graph/partition/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

/// A network of matrix products of different sizes; nothing is elementwise, so nothing is in place.
Graph products(uint64_t seed, int nodes) {
  Rng rng(seed);
  Builder b("net");
  std::vector<ValueId> pool = {b.input("x", DType::F32, {8, 8})};
  for (int i = 0; i < nodes; ++i) {
    const ValueId from = pool[static_cast<size_t>(
        rng.between(std::max<int64_t>(0, std::ssize(pool) - 3), std::ssize(pool) - 1))];
    const int64_t width = 8 * rng.between(1, 8);
    const ValueId w = b.constant("w", Array(DType::F32, {b.type(from).shape[1], width}));
    pool.push_back(b.node("MatMul", {from, w}));
  }
  // Reading a value late keeps it alive.
  ValueId last = b.node("ReduceSum", {pool.back(), b.ints({0, 1})});
  for (size_t i = 1; i + 1 < pool.size(); ++i)
    last = b.node("Concat", {last, b.node("ReduceSum", {pool[i], b.ints({0, 1})})},
                  {{"axis", int64_t{0}}});
  b.output(last, "y");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

int64_t aligned(const Graph& graph, ValueId id) {
  const tensor::TensorType& type = graph.values[static_cast<size_t>(id)].type;
  return (storage_bytes(type.dtype, element_count(type.shape)) + 63) / 64 * 64;
}

/// Most bytes alive at once, from the definition: for each step, every value produced at or before
/// it and read at or after it.
int64_t alive_at_most(const Graph& graph, const std::vector<Group>& groups) {
  int64_t most = 0;
  const auto outputs = [&](ValueId id) {
    return std::count(graph.outputs.begin(), graph.outputs.end(), id) > 0;
  };
  for (size_t step = 0; step < groups.size(); ++step) {
    int64_t alive = 0;
    for (size_t made = 0; made <= step; ++made)
      for (ValueId id : groups[made].outputs) {
        bool needed = made == step;
        for (size_t read = step; read < groups.size(); ++read)
          needed |= std::count(groups[read].inputs.begin(), groups[read].inputs.end(), id) > 0;
        if (needed && !outputs(id)) alive += aligned(graph, id);
      }
    most = std::max(most, alive);
  }
  return most;
}

TEST(MemoryPlan, LowerBoundIsWhatIsAliveAndPlansComeClose) {
  int exact = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Graph graph = products(seed, 10);
    const std::vector<Group> groups = fuse(graph, {false, 1});
    const MemoryPlan plan = plan_memory(graph, groups);
    const Status sound = verify_plan(graph, groups, plan);
    EXPECT_TRUE(sound) << to_string(sound.error());
    EXPECT_EQ(plan.lower_bound, alive_at_most(graph, groups)) << "seed " << seed;
    EXPECT_GE(plan.arena_bytes, plan.lower_bound);
    EXPECT_LE(plan.arena_bytes, plan.lower_bound * 5 / 4) << "seed " << seed;
    exact += plan.arena_bytes == plan.lower_bound;
  }
  EXPECT_GE(exact, 30);  // of 40
}

TEST(MemoryPlan, ElementwiseGroupsWorkInPlace) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {16, 16});
  const ValueId w = b.constant("w", Array(DType::F32, {16, 16}));
  const ValueId first = b.node("MatMul", {x, w});
  const ValueId second = b.node("MatMul", {first, w});
  const ValueId sum = b.node("Exp", {first});
  b.output(b.node("MatMul", {sum, second}), "y");
  const auto graph = b.finish();
  const auto groups = fuse(*graph);
  const MemoryPlan plan = plan_memory(*graph, groups);
  EXPECT_EQ(plan.in_place[static_cast<size_t>(sum)], first);
  EXPECT_EQ(plan.offset[static_cast<size_t>(sum)], plan.offset[static_cast<size_t>(first)]);
  EXPECT_EQ(plan.arena_bytes, 2 * 1024);
  EXPECT_TRUE(verify_plan(*graph, groups, plan));
}

TEST(MemoryPlan, AValueReadLaterIsNotOverwritten) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {16, 16});
  const ValueId w = b.constant("w", Array(DType::F32, {16, 16}));
  const ValueId first = b.node("MatMul", {x, w});
  const ValueId shaped = b.node("Reshape", {first, b.ints({4, 64})});
  const ValueId other = b.node("Exp", {first});
  const ValueId product = b.node("MatMul", {other, w});
  b.output(b.node("Add", {b.node("Reshape", {shaped, b.ints({16, 16})}), product}), "y");
  const auto graph = b.finish();
  const auto groups = fuse(*graph, {false, 1});
  const MemoryPlan plan = plan_memory(*graph, groups);
  EXPECT_EQ(plan.in_place[static_cast<size_t>(other)], -1);  // its alias is read later
  EXPECT_TRUE(verify_plan(*graph, groups, plan));
}

TEST(MemoryPlan, VerifierFindsOverlapsAndValuesOutside) {
  const Graph graph = products(3, 8);
  const std::vector<Group> groups = fuse(graph, {false, 1});
  MemoryPlan broken = plan_memory(graph, groups);
  for (int64_t& offset : broken.offset) offset = offset < 0 ? -1 : 0;
  EXPECT_FALSE(verify_plan(graph, groups, broken));
  broken = plan_memory(graph, groups);
  broken.arena_bytes /= 2;
  EXPECT_FALSE(verify_plan(graph, groups, broken));
}

}  // namespace
}  // namespace tilewright::graph
