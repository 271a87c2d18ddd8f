// Groups of a device are brought together as far as their inputs allow.
//
//   a: CPU, b: vta, c: CPU (reads a), d: vta (reads b)  =>  a, c, then one launch of b and d
//
// The order is topological: of what is ready, everything on the current device goes first.
#include "tilewright/graph/partition/launches.h"

#include <algorithm>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/graph/ir/edit.h"

namespace tilewright::graph {
namespace {

/// For each group, the groups that make what it reads.
std::vector<std::set<size_t>> sources_of(const Graph& graph, const std::vector<Group>& groups) {
  std::vector<int> maker(graph.values.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g)
    for (int n : groups[g].nodes)
      for (ValueId id : graph.nodes[static_cast<size_t>(n)].outputs)
        if (id >= 0) maker[static_cast<size_t>(id)] = static_cast<int>(g);
  std::vector<std::set<size_t>> sources(groups.size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (ValueId id : groups[g].inputs)
      if (id >= 0 && maker[static_cast<size_t>(id)] >= 0)
        sources[g].insert(static_cast<size_t>(maker[static_cast<size_t>(id)]));
  return sources;
}

/// An order in which the device changes seldom: whatever is ready on the current one goes first.
std::vector<size_t> order_by_device(const std::vector<Group>& groups,
                                    const std::vector<std::set<size_t>>& sources) {
  std::vector<size_t> order;
  std::vector<bool> done(groups.size(), false);
  const auto ready = [&](size_t g) {
    return !done[g] && std::all_of(sources[g].begin(), sources[g].end(),
                                   [&](size_t source) { return done[source]; });
  };
  std::string device;
  while (order.size() < groups.size()) {
    bool advanced = false;
    size_t other = groups.size();
    for (size_t g = 0; g < groups.size(); ++g) {
      if (!ready(g)) continue;
      if (groups[g].device != device) {
        // The CPU first: when all of its groups that are ready are done, whole launches can run.
        const bool better =
            other == groups.size() || (groups[g].device.empty() && !groups[other].device.empty());
        if (better) other = g;
        continue;
      }
      done[g] = advanced = true;
      order.push_back(g);
    }
    if (advanced) continue;
    TW_CHECK(other < groups.size(), "groups are in a cycle");
    device = groups[other].device;
  }
  return order;
}

Group launch_of(const Graph& graph, std::vector<Group> parts) {
  Group launch;
  launch.kind = GroupKind::Launch;
  launch.device = parts.front().device;
  launch.anchor = parts.front().anchor;
  std::set<int> nodes;
  for (const Group& part : parts) nodes.insert(part.nodes.begin(), part.nodes.end());
  launch.nodes.assign(nodes.begin(), nodes.end());
  std::set<ValueId> made, needed(graph.outputs.begin(), graph.outputs.end());
  for (const Group& part : parts) made.insert(part.outputs.begin(), part.outputs.end());
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (!nodes.contains(static_cast<int>(n)))
      needed.insert(graph.nodes[n].inputs.begin(), graph.nodes[n].inputs.end());
  const auto add = [](std::vector<ValueId>& list, ValueId id) {
    if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
  };
  for (const Group& part : parts) {
    for (ValueId id : part.inputs)
      if (!made.contains(id)) add(launch.inputs, id);
    for (ValueId id : part.outputs)
      if (needed.contains(id)) add(launch.outputs, id);
  }
  launch.parts = std::move(parts);
  return launch;
}

}  // namespace

std::vector<Group> gather_launches(const Graph& graph, std::vector<Group> groups) {
  const std::vector<size_t> order = order_by_device(groups, sources_of(graph, groups));
  std::vector<Group> result, run;
  const auto flush = [&] {
    if (!run.empty()) result.push_back(launch_of(graph, std::move(run)));
    run.clear();
  };
  for (size_t g : order) {
    Group& group = groups[g];
    if (group.device.empty() || (!run.empty() && run.front().device != group.device)) flush();
    (group.device.empty() ? result : run).push_back(std::move(group));
  }
  flush();
  return result;
}

}  // namespace tilewright::graph
