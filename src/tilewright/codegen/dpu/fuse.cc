// Groups of nodes that run together: conv, conv + pool and conv + add.
//
// What comes after a convolution joins it if it alone reads the result; then the map between them
// needs a window of rows, and MISC works beside CONV even when layers wait for each other.
#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

struct Uses {
  std::vector<int> readers, writers;  ///< nodes, by root
  bool stored = false;
};

std::vector<Uses> uses_of(const Lowered& lowered) {
  std::vector<Uses> uses(lowered.roots.size());
  for (size_t i = 0; i < lowered.nodes.size(); ++i) {
    for (const View& view : lowered.nodes[i].in)
      uses[static_cast<size_t>(view.root)].readers.push_back(static_cast<int>(i));
    uses[static_cast<size_t>(lowered.nodes[i].out.root)].writers.push_back(static_cast<int>(i));
  }
  for (const Store& store : lowered.stores)
    uses[static_cast<size_t>(store.view.root)].stored = true;
  return uses;
}

bool whole(const View& view, const Root& root) {
  return view.row == 0 && view.col == 0 && view.row_step == 1 && view.col_step == 1 &&
         view.group == 0 && view.groups == root.groups && view.height == root.height &&
         view.width == root.width;
}

/// The convolution that `node` joins; -1: none. k pool steps must consume what a tile makes.
int leader(const Lowered& lowered, const std::vector<Uses>& uses, const Node& node) {
  if (node.kind == NodeKind::Conv) return -1;
  if (node.kind == NodeKind::Pool && kBanks % (2 * node.pool.stride_h) != 0) return -1;
  if (node.kind == NodeKind::Pool && (node.pool.type == kCopy || node.pool.type == kUpsample))
    return -1;
  if (node.out.row_step != 1 || node.out.col_step != 1) return -1;
  int found = -1;
  for (const View& view : node.in) {
    const size_t root = static_cast<size_t>(view.root);
    if (uses[root].stored || uses[root].writers.size() != 1 || uses[root].readers.size() != 1)
      continue;
    const Node& from = lowered.nodes[static_cast<size_t>(uses[root].writers[0])];
    if (from.kind != NodeKind::Conv || !whole(view, lowered.roots[root]) ||
        !whole(from.out, lowered.roots[root]))
      continue;
    found = std::max(found, uses[root].writers[0]);
  }
  return found;
}

}  // namespace

std::vector<GroupPlan> make_groups(const Lowered& lowered, const Config& config,
                                   const PlanOptions& options) {
  const std::vector<Uses> uses = uses_of(lowered);
  std::vector<int> joins(lowered.nodes.size(), -1);
  std::vector<bool> leads(lowered.nodes.size(), false);
  if (config.compiler.fusion && options.fuse)
    for (size_t i = 0; i < lowered.nodes.size(); ++i) {
      joins[i] = leader(lowered, uses, lowered.nodes[i]);
      if (joins[i] >= 0) leads[static_cast<size_t>(joins[i])] = true;
    }
  std::vector<GroupPlan> groups;
  for (size_t k = 0; k < lowered.nodes.size(); ++k) {
    const size_t i = options.order.empty() ? k : static_cast<size_t>(options.order[k]);
    if (leads[i]) continue;
    GroupPlan group;
    if (joins[i] >= 0) group.nodes.push_back(joins[i]);
    group.nodes.push_back(static_cast<int>(i));
    for (size_t j = 0; j < group.nodes.size(); ++j) group.depth.push_back(static_cast<int>(j) + 1);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace tilewright::dpu
