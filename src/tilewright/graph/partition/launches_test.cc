#include "tilewright/graph/partition/launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/partition/memory.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

using ::testing::ElementsAre;

/// Abs and Neg run on `toy`, everything else on the CPU.
DeviceOf device_of(const Graph& graph) {
  return [&graph](int n) {
    const std::string& op = graph.nodes[static_cast<size_t>(n)].op;
    return op == "Abs" || op == "Neg" ? "toy" : "";
  };
}

/// One line per group: `cpu Exp` or `toy Abs+Neg`.
std::vector<std::string> describe(const Graph& graph, const std::vector<Group>& groups) {
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    std::string line = group.device.empty() ? "cpu " : group.device + " ";
    for (int n : group.nodes)
      line += (line.back() == ' ' ? "" : "+") + graph.nodes[static_cast<size_t>(n)].op;
    lines.push_back(line);
  }
  return lines;
}

TEST(Launches, DevicesStayApartAndNeighboursJoin) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4});
  const ValueId a = b.node("Abs", {x});
  const ValueId e = b.node("Exp", {x});  // between the two in the graph, needed by neither
  const ValueId n = b.node("Neg", {a});
  b.output(b.node("Mul", {e, n}), "y");
  const Graph graph = finish(b);
  const std::vector<Group> groups =
      gather_launches(graph, fuse(graph, {.enable = false, .device = device_of(graph)}));
  EXPECT_THAT(describe(graph, groups), ElementsAre("cpu Exp", "toy Abs+Neg", "cpu Mul"));
  const Group& launch = groups[1];
  EXPECT_EQ(launch.kind, GroupKind::Launch);
  EXPECT_THAT(launch.inputs, ElementsAre(x));
  EXPECT_THAT(launch.outputs, ElementsAre(n));
  EXPECT_EQ(launch.parts.size(), 2u);
  EXPECT_TRUE(verify_plan(graph, groups, plan_memory(graph, groups)));
}

TEST(Launches, FusionStopsAtTheBorder) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4});
  b.output(b.node("Exp", {b.node("Neg", {b.node("Abs", {b.node("Sqrt", {x})})})}), "y");
  const Graph graph = finish(b);
  EXPECT_THAT(describe(graph, gather_launches(graph, fuse(graph, {.device = device_of(graph)}))),
              ElementsAre("cpu Sqrt", "toy Abs+Neg", "cpu Exp"));
  EXPECT_THAT(describe(graph, gather_launches(graph, fuse(graph))),
              ElementsAre("cpu Sqrt+Abs+Neg+Exp"));
}

TEST(Launches, ACpuNodeInBetweenGivesTwoLaunches) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4});
  const ValueId a = b.node("Abs", {x});
  b.output(b.node("Neg", {b.node("Exp", {a})}), "y");
  b.output(a, "z");
  const Graph graph = finish(b);
  EXPECT_THAT(describe(graph, gather_launches(graph, fuse(graph, {.device = device_of(graph)}))),
              ElementsAre("toy Abs", "cpu Exp", "toy Neg"));
}

}  // namespace
}  // namespace tilewright::graph
