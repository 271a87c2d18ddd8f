// The order of layers.
//
// Pools of branches come first, so that MISC makes them while CONV works on the other branches:
//
//   conv a, conv b, pool c, conv d (reads c), concat  =>  pool c, conv a, conv b, conv d, concat
//
// Otherwise any order will do in which nodes come behind what they need. Breadth first, branches
// lie side by side: a layer seldom waits for the one just before it. Depth first, a branch is done
// before the next begins, and less is alive.
#include <algorithm>
#include <array>

#include "tilewright/codegen/dpu/lifetimes.h"
#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

/// Whether `layer` is a pool of one of several branches that begin at its input.
bool is_branch_pool(const Network& network, const Layer& layer) {
  const auto* pool = std::get_if<PoolLayer>(&layer.op);
  if (pool == nullptr || pool->window.stride_h != 1) return false;
  const auto readers =
      std::count_if(network.layers.begin(), network.layers.end(), [&](const Layer& other) {
        return std::count(other.inputs.begin(), other.inputs.end(), layer.inputs[0]) > 0;
      });
  return readers > 1;
}

bool share_groups(const View& a, const View& b) {
  return a.root == b.root && a.group < b.group + b.groups && b.group < a.group + a.groups;
}

/// Whether `later` reads what `node` makes, or one of them writes what the other one touches.
bool conflict(const Lowered& lowered, const Node& node, const Node& later) {
  if (share_groups(node.out, later.out)) return true;
  for (const View& view : later.in)
    if (share_groups(view, node.out) ||
        lowered.roots[static_cast<size_t>(view.root)].rows_of == node.out.root)
      return true;
  for (const View& view : node.in)
    if (share_groups(view, later.out) ||
        lowered.roots[static_cast<size_t>(view.root)].rows_of == later.out.root)
      return true;
  return false;
}

/// Roughly the cycles of a node.
int64_t work(const Node& node) {
  int64_t words = node.out.groups;
  for (const Block& block : node.blocks) words += block.words_per_group * block.out.size();
  return (node.out.height + kBanks - 1) / kBanks * node.out.width * words;
}

/// Nodes one after the other, each the best of those that could be next.
class ListSchedule {
 public:
  ListSchedule(const Lowered& lowered, const Way& way)
      : lowered_(lowered),
        way_(way),
        count_(lowered.nodes.size()),
        before_(needed_before(lowered)),
        open_(count_),
        ready_at_(count_, -1),
        level_(count_),
        ahead_(count_),
        touched_(lowered.roots.size()),
        readers_(lowered.roots.size()) {
    std::vector<std::vector<int>> after(count_);
    for (size_t n = 0; n < count_; ++n) {
      open_[n] = static_cast<int>(before_[n].size());
      for (const int b : before_[n]) {
        after[static_cast<size_t>(b)].push_back(static_cast<int>(n));
        level_[n] = std::max(level_[n], level_[static_cast<size_t>(b)] + 1);
      }
      for (const View& view : lowered.nodes[n].in) ++readers_[static_cast<size_t>(view.root)];
    }
    for (size_t n = count_; n-- > 0;) {
      for (const int a : after[n]) ahead_[n] = std::max(ahead_[n], ahead_[static_cast<size_t>(a)]);
      ahead_[n] += work(lowered.nodes[n]);
    }
    after_ = std::move(after);
  }

  std::vector<int> run() {
    for (size_t n = 0; n < count_; ++n)
      if (open_[n] == 0) ready_at_[n] = 0;
    std::vector<bool> done(count_);
    std::vector<int> order;
    while (order.size() < count_) {
      const int step = static_cast<int>(order.size());
      size_t best = count_;
      std::array<int64_t, 3> least{};
      for (size_t n = 0; n < count_; ++n) {
        if (done[n] || ready_at_[n] < 0) continue;
        const std::array<int64_t, 3> key = {left_to_wait(n, step), preference(n),
                                            static_cast<int64_t>(n)};
        if (best < count_ && key >= least) continue;
        best = n;
        least = key;
      }
      done[best] = true;
      order.push_back(static_cast<int>(best));
      take(best, step);
    }
    return order;
  }

 private:
  int64_t left_to_wait(size_t n, int step) const {
    const auto found = way_.later.find(static_cast<int>(n));
    if (found == way_.later.end()) return 0;
    return std::max<int64_t>(0, found->second - (step - ready_at_[n]));
  }

  int64_t preference(size_t n) const {
    switch (way_.schedule) {
      case Schedule::Given:
        return 0;
      case Schedule::BreadthFirst:
        return level_[n];
      case Schedule::DepthFirst:
        return -ready_at_[n];
      case Schedule::LeastLive:
        return growth(n);
      case Schedule::LongestWay:
        return -ahead_[n];
    }
    return 0;
  }

  int64_t words(int r) const {
    const Root& root = lowered_.roots[static_cast<size_t>(r)];
    return root.input ? 0 : row_words(root.height, root.width, root.groups);
  }

  /// How much more memory is in use behind node `n` than before it.
  int64_t growth(size_t n) const {
    const Node& node = lowered_.nodes[n];
    int64_t change = touched_[static_cast<size_t>(node.out.root)] ? 0 : words(node.out.root);
    for (size_t k = 0; k < node.in.size(); ++k) {
      const int r = node.in[k].root;
      int mine = 0;
      bool first = true;
      for (size_t j = 0; j < node.in.size(); ++j) {
        mine += node.in[j].root == r;
        first = first && (j >= k || node.in[j].root != r);
      }
      if (first && readers_[static_cast<size_t>(r)] == mine) change -= words(r);
    }
    return change;
  }

  void take(size_t n, int step) {
    const Node& node = lowered_.nodes[n];
    touched_[static_cast<size_t>(node.out.root)] = true;
    for (const View& view : node.in) --readers_[static_cast<size_t>(view.root)];
    for (const int a : after_[n])
      if (--open_[static_cast<size_t>(a)] == 0) ready_at_[static_cast<size_t>(a)] = step + 1;
  }

  const Lowered& lowered_;
  const Way& way_;
  const size_t count_;
  const std::vector<std::vector<int>> before_;
  std::vector<std::vector<int>> after_;
  std::vector<int> open_;      ///< nodes that are still to come before it
  std::vector<int> ready_at_;  ///< step; -1: not yet
  std::vector<int64_t> level_, ahead_;
  std::vector<bool> touched_;  ///< roots that something was written to
  std::vector<int> readers_;   ///< by root: nodes still to come
};

}  // namespace

Network with_pools_first(const Network& network) {
  Network ordered = network;
  ordered.layers.clear();
  for (const Layer& layer : network.layers) {
    auto at = ordered.layers.end();
    if (is_branch_pool(network, layer)) {
      at = std::find_if(ordered.layers.rbegin(), ordered.layers.rend(), [&](const Layer& other) {
             return other.output == layer.inputs[0];
           }).base();
    }
    ordered.layers.insert(at, layer);
  }
  return ordered;
}

std::vector<std::vector<int>> needed_before(const Lowered& lowered) {
  std::vector<std::vector<int>> before(lowered.nodes.size());
  for (size_t n = 0; n < lowered.nodes.size(); ++n)
    for (size_t b = 0; b < n; ++b)
      if (conflict(lowered, lowered.nodes[b], lowered.nodes[n]))
        before[n].push_back(static_cast<int>(b));
  return before;
}

std::vector<int> order_nodes(const Lowered& lowered, const Way& way) {
  return ListSchedule(lowered, way).run();
}

bool independent(const Lowered& lowered, const Plan& plan, size_t first, size_t last) {
  for (size_t g = first; g < last; ++g)
    for (const int n : plan.groups[g].nodes)
      for (const int later : plan.groups[last].nodes)
        if (conflict(lowered, lowered.nodes[static_cast<size_t>(n)],
                     lowered.nodes[static_cast<size_t>(later)]))
          return false;
  return true;
}

}  // namespace tilewright::dpu
