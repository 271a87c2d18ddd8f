// Lifetimes: the map between two 3x3 convolutions lives in their groups, the shortcut of a residual
// block from the addition before the block to the one at its end, which writes its sum over it.
#include "tilewright/codegen/dpu/lifetimes.h"

#include <algorithm>

namespace tilewright::dpu {
namespace {

bool whole_map(const View& view, const Root& root) {
  return view.row_step == 1 && view.col_step == 1 && view.groups == root.groups &&
         view.height == root.height && view.width == root.width;
}

bool same_shape(const Root& a, const Root& b) {
  return a.height == b.height && a.width == b.width && a.groups == b.groups;
}

}  // namespace

int64_t row_words(int64_t rows, int64_t columns, int64_t groups) {
  return (rows + kBanks - 1) / kBanks * columns * groups;
}

std::vector<Lifetime> lifetimes(const Lowered& lowered, const std::vector<GroupPlan>& groups) {
  std::vector<Lifetime> lives(lowered.roots.size());
  std::vector<int> writers(lowered.roots.size());
  const auto touch = [&](const View& view, int group) {
    Lifetime& life = lives[static_cast<size_t>(view.root)];
    life.first = life.first < 0 ? group : std::min(life.first, group);
    life.last = std::max(life.last, group);
  };
  for (size_t g = 0; g < groups.size(); ++g)
    for (const int n : groups[g].nodes) {
      const Node& node = lowered.nodes[static_cast<size_t>(n)];
      for (const View& view : node.in) {
        touch(view, static_cast<int>(g));
        ++lives[static_cast<size_t>(view.root)].readers;
        const int rows_of = lowered.roots[static_cast<size_t>(view.root)].rows_of;
        if (rows_of < 0) continue;
        lives[static_cast<size_t>(rows_of)].last =
            std::max(lives[static_cast<size_t>(rows_of)].last, static_cast<int>(g));
        ++lives[static_cast<size_t>(rows_of)].readers;
      }
      touch(node.out, static_cast<int>(g));
      ++writers[static_cast<size_t>(node.out.root)];
    }
  for (const Store& store : lowered.stores)
    lives[static_cast<size_t>(store.view.root)].stored = true;
  for (size_t r = 0; r < lives.size(); ++r) {
    Lifetime& life = lives[r];
    life.internal = life.first == life.last && life.readers > 0 && writers[r] == 1 &&
                    !life.stored && !lowered.roots[r].input && lowered.roots[r].rows_of < 0;
  }
  return lives;
}

std::vector<int> in_place(const Lowered& lowered, const std::vector<GroupPlan>& groups,
                          const std::vector<Lifetime>& lives, const std::vector<bool>& in_ddr) {
  std::vector<int> over(lowered.roots.size(), -1);
  std::vector<bool> taken(lowered.roots.size(), false);
  for (size_t g = 0; g < groups.size(); ++g)
    for (const int n : groups[g].nodes) {
      const Node& node = lowered.nodes[static_cast<size_t>(n)];
      const size_t out = static_cast<size_t>(node.out.root);
      if (node.kind != NodeKind::Elew || in_ddr[out] || lives[out].internal ||
          !whole_map(node.out, lowered.roots[out]))
        continue;
      for (const View& view : node.in) {
        const size_t from = static_cast<size_t>(view.root);
        int readers = 0;
        for (const int other : groups[g].nodes)
          for (const View& read : lowered.nodes[static_cast<size_t>(other)].in)
            readers += read.root == view.root;
        if (in_ddr[from] || taken[from] || lives[from].last != static_cast<int>(g) ||
            readers != 1 || lives[from].stored || !whole_map(view, lowered.roots[from]) ||
            !same_shape(lowered.roots[from], lowered.roots[out]))
          continue;
        over[out] = view.root;
        taken[from] = true;
        break;
      }
    }
  return over;
}

}  // namespace tilewright::dpu
