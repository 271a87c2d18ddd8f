// Recurrences on GPUs: the host goes through time, blocks share out what a step computes.
//
//   for t { for block of hidden elements { gates from h[t - 1]; h[t] } }
//   =>  a kernel per t, whose blocks take the blocks of hidden elements and whose threads take the
//       results inside; what only one block of elements uses is in shared memory
#include <algorithm>
#include <map>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {
namespace {

/// One nest that several blocks stand in.
struct SharedNest {
  std::vector<std::string> blocks;
  std::vector<std::string> steps, parts;  ///< loops around all of them: over time, and the rest
};

/// The loops that all blocks of a nest stand in.
std::vector<std::string> common_loops(const std::vector<const BlockFacts*>& blocks) {
  std::vector<std::string> common = blocks[0]->loops;
  for (const BlockFacts* block : blocks) {
    const auto end =
        std::mismatch(common.begin(), common.end(), block->loops.begin(), block->loops.end());
    common.erase(end.first, common.end());
  }
  return common;
}

std::vector<SharedNest> shared_nests(const std::vector<BlockFacts>& blocks) {
  std::map<std::string, std::vector<const BlockFacts*>> by_root;
  for (const BlockFacts& block : blocks)
    if (!block.loops.empty()) by_root[block.loops[0]].push_back(&block);
  std::vector<SharedNest> nests;
  for (const auto& [root, members] : by_root) {
    if (members.size() < 2) continue;
    SharedNest nest;
    for (const BlockFacts* block : members) nest.blocks.push_back(block->name);
    for (const std::string& loop : common_loops(members)) {
      const bool step = std::any_of(members.begin(), members.end(), [&](const BlockFacts* block) {
        return std::any_of(block->block->iters.begin(), block->block->iters.end(),
                           [&](const Iter& iter) {
                             return iter.kind == IterKind::Scan && block->loop_of(iter.var) == loop;
                           });
      });
      (step ? nest.steps : nest.parts).push_back(loop);
    }
    if (!nest.steps.empty()) nests.push_back(std::move(nest));
  }
  return nests;
}

/// Gives the results of `block` inside the common loops to threads, with its terms inside.
bool share_out(Draft& draft, const std::string& block, const std::string& inside,
               const hw::GpuTarget& target) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* facts = find_block(blocks, block);
  const LoopNest own = draft.nest_inside(block, inside);
  schedule::Names order, threads, terms;
  int64_t left = target.max_threads;
  for (size_t i = own.names.size(); i-- > 0;) {
    const bool space =
        std::any_of(facts->block->iters.begin(), facts->block->iters.end(), [&](const Iter& iter) {
          return iter.kind == IterKind::Space && facts->loop_of(iter.var) == own.names[i];
        });
    const bool fits = own.extents[i] >= 1 && own.extents[i] <= left;
    if (space && fits && own.extents[i] > 1 && threads.size() < 3) {
      threads.insert(threads.begin(), own.names[i]);
      left /= own.extents[i];
    } else {
      terms.insert(terms.begin(), own.names[i]);
    }
  }
  order = threads;
  order.insert(order.end(), terms.begin(), terms.end());
  return (order.size() < 2 || draft.attempt(schedule::Reorder{order})) &&
         bind_threads(draft, threads);
}

std::vector<std::string> allocated_inside(const Func& func, const std::string& loop) {
  std::vector<std::string> names;
  walk(func.body, [&](const Stmt& s) {
    const auto* f = s.as<For>();
    if (f == nullptr || f->var.name() != loop) return;
    walk(f->body, [&](const Stmt& x) {
      if (const auto* alloc = x.as<Alloc>()) names.push_back(alloc->buffer.name());
    });
  });
  return names;
}

}  // namespace

Answer<std::vector<std::string>> schedule_gpu_scans(Draft& draft, const hw::GpuTarget& target) {
  std::vector<std::string> done;
  const std::vector<SharedNest> nests = shared_nests(draft.blocks());
  if (nests.empty()) return decline("no loop hands values from one step to the next");
  for (const SharedNest& nest : nests) {
    const Draft::Mark start = draft.mark();
    const std::string inside = nest.parts.empty() ? nest.steps.back() : nest.parts.back();
    bool fine = true;
    for (const std::string& block : nest.blocks)
      fine = fine && share_out(draft, block, inside, target);
    // What stays inside a part of a step is in shared memory; other values outlive the kernel.
    if (!nest.parts.empty())
      for (const std::string& buffer : allocated_inside(draft.func(), nest.parts[0]))
        fine = fine && draft.attempt(schedule::SetScope{buffer, "shared"});
    if (fine && bind_blocks(draft, nest.parts)) {
      done.insert(done.end(), nest.blocks.begin(), nest.blocks.end());
    } else {
      draft.revert(start);
    }
  }
  if (done.empty()) return decline("threads cannot share out what a step of the loop computes");
  return done;
}

}  // namespace tilewright::rules
