// Groups of nodes that run together: conv, conv + pool and conv + add.
//
// What comes after a convolution joins it if it alone reads the result; then the map between them
// needs a window of rows, and MISC works beside CONV even when layers wait for each other.
#include <algorithm>
#include <cstddef>

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

int64_t conv_time(const Lowered& lowered, const GroupPlan& group) {
  const Node& node = lowered.nodes[static_cast<size_t>(group.nodes[0])];
  if (node.kind != NodeKind::Conv) return 0;
  int64_t words = 0;
  for (const Block& block : node.blocks) words += block.words_per_group * block.out.size();
  return (node.out.height + kBanks - 1) / kBanks * node.out.width * words;
}

int64_t pool_time(const Config& config, const Node& pool) {
  const int64_t pixels = pool.out.width * pool.out.groups * pool.pool.kernel_h * pool.pool.kernel_w;
  return (pool.out.height + 1) / 2 * (config.timing.lat_misc + pixels);
}

bool overlap(const View& a, const View& b) {
  return a.root == b.root && a.group < b.group + b.groups && b.group < a.group + a.groups;
}

/// Whether a group reads what `pool` makes, or makes what it reads.
bool depends(const Lowered& lowered, const GroupPlan& group, const Node& pool) {
  for (const int n : group.nodes) {
    const Node& node = lowered.nodes[static_cast<size_t>(n)];
    if (overlap(node.out, pool.in[0]) || overlap(node.out, pool.out)) return true;
    for (const View& view : node.in)
      if (overlap(view, pool.out)) return true;
  }
  return false;
}

/// The group of a convolution of another branch that has the most time left for `pool`.
size_t companion(const Lowered& lowered, const std::vector<GroupPlan>& groups,
                 const std::vector<int64_t>& left, size_t g) {
  const Node& pool = lowered.nodes[static_cast<size_t>(groups[g].nodes[0])];
  size_t best = g;
  for (size_t other = g + 1; other < groups.size(); ++other) {
    if (depends(lowered, groups[other], pool)) break;
    if (left[other] > (best == g ? 0 : left[best])) best = other;
  }
  return best;
}

/// Pools of Inception's branches run beside convolutions of the other branches: layers wait for
/// each other, but MISC and CONV work side by side.
void put_pools_beside(const Lowered& lowered, const Config& config,
                      std::vector<GroupPlan>& groups) {
  std::vector<int64_t> left;
  for (const GroupPlan& group : groups)
    left.push_back(group.nodes.size() == 1 ? conv_time(lowered, group) : 0);
  for (size_t g = 0; g < groups.size();) {
    const int n = groups[g].nodes[0];
    const Node& pool = lowered.nodes[static_cast<size_t>(n)];
    const bool branch = groups[g].nodes.size() == 1 && pool.kind == NodeKind::Pool &&
                        pool.window.stride_h == 1 && pool.pool.type <= kAveragePool;
    const size_t best = branch ? companion(lowered, groups, left, g) : g;
    if (best == g) {
      ++g;
      continue;
    }
    groups[best].nodes.push_back(n);
    groups[best].depth.push_back(1);
    left[best] -= pool_time(config, pool);
    groups.erase(groups.begin() + static_cast<ptrdiff_t>(g));
    left.erase(left.begin() + static_cast<ptrdiff_t>(g));
  }
}

}  // namespace

std::vector<GroupPlan> make_groups(const Lowered& lowered, const Config& config,
                                   const PlanOptions& options) {
  const std::vector<Uses> uses = uses_of(lowered);
  std::vector<int> joins(lowered.nodes.size(), -1);
  std::vector<bool> leads(lowered.nodes.size(), false);
  if (config.compiler.fusion && options.fuse)
    for (size_t i = 0; i < lowered.nodes.size(); ++i) {
      if (options.apart.count(static_cast<int>(i)) != 0) continue;
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
  if (config.compiler.parallel_branches && config.compiler.layer_barrier)
    put_pools_beside(lowered, config, groups);
  return groups;
}

}  // namespace tilewright::dpu
