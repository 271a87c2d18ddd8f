// Partition: groups of one device that can run one after the other become one launch.
#pragma once

#include <vector>

#include "tilewright/graph/partition/fuse.h"

namespace tilewright::graph {

/// Reorders `groups` (as `fuse` gives them) so that groups of a device follow each other as far as
/// their inputs allow, and makes each run of groups with a device one group of kind Launch.
/// keeps: topological order; groups of the CPU.
std::vector<Group> gather_launches(const Graph& graph, std::vector<Group> groups);

}  // namespace tilewright::graph
