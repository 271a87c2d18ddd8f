// Groups of nodes that run together: conv, conv + pool, conv + add, pool + conv, and the three of a
// transposed convolution over zeros.
//
// What comes after a convolution joins it if it alone reads the result; then the map between them
// needs a window of rows, and MISC works beside CONV even when layers wait for each other. A
// convolution behind a pool may join it in the same way: four POOLs make the rows of a CONV.
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

bool is_zero(const Lowered& lowered, int n) {
  return lowered.nodes[static_cast<size_t>(n)].kind == NodeKind::Zero;
}

/// The nodes that a convolution follows tile by tile: the pool that alone writes what it alone
/// reads, or zeros and the copies between them.
std::vector<int> makers(const Lowered& lowered, const std::vector<Uses>& uses, const Node& conv,
                        bool behind_pools) {
  if (conv.kind != NodeKind::Conv || conv.out.row_step != 1 || conv.out.col_step != 1) return {};
  const size_t root = static_cast<size_t>(conv.in[0].root);
  const std::vector<int>& writers = uses[root].writers;
  if (uses[root].stored || uses[root].readers.size() != 1 || writers.empty()) return {};
  const Node& last = lowered.nodes[static_cast<size_t>(writers.back())];
  if (last.kind != NodeKind::Pool) return {};
  const bool filled =
      std::all_of(writers.begin(), writers.end() - 1, [&](int n) { return is_zero(lowered, n); });
  if (writers.size() > 1) return filled ? writers : std::vector<int>{};
  const bool pool = last.pool.type == kMaxPool || last.pool.type == kAveragePool;
  const bool all = whole(conv.in[0], lowered.roots[root]) && whole(last.out, lowered.roots[root]);
  return behind_pools && pool && all ? writers : std::vector<int>{};
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

/// For each node those before it in its group.
std::vector<std::vector<int>> joined(const Lowered& lowered, bool behind_pools) {
  const std::vector<Uses> uses = uses_of(lowered);
  std::vector<std::vector<int>> joins(lowered.nodes.size());
  std::vector<bool> leads(lowered.nodes.size(), false);
  for (size_t i = 0; i < joins.size(); ++i)
    if (const int from = leader(lowered, uses, lowered.nodes[i]); from >= 0) {
      joins[i] = {from};
      leads[static_cast<size_t>(from)] = true;
    }
  for (size_t i = 0; i < joins.size(); ++i) {
    if (leads[i] || !joins[i].empty()) continue;
    const std::vector<int> from = makers(lowered, uses, lowered.nodes[i], behind_pools);
    const auto joins_others = [&](int n) { return !joins[static_cast<size_t>(n)].empty(); };
    if (std::none_of(from.begin(), from.end(), joins_others)) joins[i] = from;
  }
  return joins;
}

/// LOADs of zeros that copies follow belong to the stage of loads; a step of theirs is a tile.
void set_stages(const Lowered& lowered, GroupPlan& group) {
  const bool filled = group.nodes.size() > 1 && is_zero(lowered, group.nodes[0]);
  int stage = 0;
  for (const int n : group.nodes) {
    if (!filled || !is_zero(lowered, n)) ++stage;
    group.depth.push_back(stage);
  }
  if (!filled) return;
  const View& first = lowered.nodes[static_cast<size_t>(group.nodes[0])].out;
  group.rows = std::max(1, kBanks / static_cast<int>(first.row_step));
}

}  // namespace

std::vector<GroupPlan> make_groups(const Lowered& lowered, const Config& config,
                                   const PlanOptions& options) {
  std::vector<std::vector<int>> joins(lowered.nodes.size());
  if (config.compiler.fusion && options.fuse) joins = joined(lowered, options.behind_pools);
  for (const int n : options.apart) joins[static_cast<size_t>(n)].clear();
  std::vector<bool> leads(lowered.nodes.size(), false);
  for (const std::vector<int>& before : joins)
    for (const int n : before) leads[static_cast<size_t>(n)] = true;
  std::vector<GroupPlan> groups;
  for (size_t k = 0; k < lowered.nodes.size(); ++k) {
    const size_t i = options.order.empty() ? k : static_cast<size_t>(options.order[k]);
    if (leads[i]) continue;
    GroupPlan group;
    group.nodes = joins[i];
    group.nodes.push_back(static_cast<int>(i));
    set_stages(lowered, group);
    groups.push_back(std::move(group));
  }
  if (config.compiler.parallel_branches && config.compiler.layer_barrier)
    put_pools_beside(lowered, config, groups);
  return groups;
}

}  // namespace tilewright::dpu
