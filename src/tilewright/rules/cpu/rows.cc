#include "tilewright/rules/cpu/rows.h"

#include <algorithm>

#include "tilewright/rules/cpu/common_steps.h"
#include "tilewright/rules/cpu/register_tile.h"

namespace tilewright::rules {
namespace {

/// Blocks before `last` that only serve rows: sums and maxima of rows, and what lies between.
std::vector<std::string> producers_of(const Draft& draft, const std::vector<BlockFacts>& blocks,
                                      const std::string& last, const hw::CpuTarget& target) {
  std::vector<std::string> names;
  for (const BlockFacts& block : blocks) {
    if (block.name == last) break;
    if (block.store == nullptr || draft.done.contains(block.name)) continue;
    if (is_output(draft.func(), block.store->buffer)) continue;
    const bool reduces = block.kind == BlockFacts::Kind::Reduce;
    if (!reduces && block.kind != BlockFacts::Kind::Injective) continue;
    if (reduces && choose_register_tile(block, target)) continue;
    names.insert(names.begin(), block.name);
  }
  return names;
}

}  // namespace

const BlockFacts* last_reader(const Func& func, const std::vector<BlockFacts>& blocks,
                              const std::string& name) {
  const BlockFacts* block = find_block(blocks, name);
  for (size_t steps = 0; steps < blocks.size(); ++steps) {
    if (block == nullptr || block->store == nullptr) return nullptr;
    if (is_output(func, block->store->buffer)) return block;
    const BlockFacts* last = nullptr;
    for (const BlockFacts* reader : readers(blocks, block->store->buffer))
      if (reader->name != block->name) last = reader;
    block = last;
  }
  return nullptr;
}

std::string row_loop(const BlockFacts& reader, const Buffer& buffer) {
  for (const Load& load : reader.loads) {
    if (!(load.buffer == buffer)) continue;
    std::string found;
    bool inside = false;
    for (const std::string& loop : reader.loops)
      for (const Iter& iter : reader.block->iters) {
        if (reader.loop_of(iter.var) != loop) continue;
        const bool selects = mentions(load, iter.var);
        if (selects && inside) return "";
        if (selects) found = loop;
        if (!selects && as_int(iter.extent) != int64_t{1}) inside = true;
      }
    return found;
  }
  return "";
}

Answer<Done> fuse_rows(Draft& draft, const std::string& name, const hw::CpuTarget& target) {
  const Draft::Mark before = draft.mark();  // keeps the facts below alive
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* last = last_reader(draft.func(), blocks, name);
  if (last == nullptr) return decline("`{}` does not serve one output alone", name);
  if (last->kind != BlockFacts::Kind::Injective)
    return decline("the output is not written by an element-wise block");
  std::string loop;
  for (const Load& load : last->loads)
    for (const BlockFacts& block : blocks) {
      // A sum of the row, or what became of one.
      if (block.store == nullptr || !(block.store->buffer == load.buffer)) continue;
      if (block.kind == BlockFacts::Kind::Init || draft.done.contains(block.name)) continue;
      const std::string row = row_loop(*last, load.buffer);
      if (!row.empty() && row != last->loops.back()) loop = row;
    }
  if (loop.empty())
    return decline("block `{}` does not read sums of whole rows in a loop over these rows",
                   last->name);
  std::vector<std::string> moved;
  for (const std::string& producer : producers_of(draft, blocks, last->name, target))
    if (draft.attempt(schedule::ComputeAt{producer, loop})) moved.push_back(producer);
  if (std::find(moved.begin(), moved.end(), name) == moved.end()) {
    draft.revert(before);
    return decline("`{}` cannot be computed for one row at a time", name);
  }
  for (const std::string& producer : moved) {
    draft.done.insert(producer);
    draft.done.insert(producer + ".init");
    const BlockFacts* facts = find_block(blocks, producer);
    if (facts->kind == BlockFacts::Kind::Injective) vectorize_innermost(draft, producer, target);
  }
  return Done{};
}

Answer<Done> reduce_rows(Draft& draft, const std::string& name) {
  const Draft::Mark before = draft.mark();  // keeps the facts below alive
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  const Buffer accumulator = block->store->buffer;
  std::vector<std::string> space;
  for (const Iter& iter : block->block->iters)
    if (iter.kind == IterKind::Space) space.push_back(block->loop_of(iter.var));
  if (space.empty() || space.back().empty())
    return decline("no loop runs along the results of `{}`", name);
  if (!draft.attempt(schedule::ComputeAt{name + ".init", space.back()}))
    return decline("the initial value of `{}` cannot be set in the loop over its results", name);
  fuse_readers(draft, accumulator, space.back());
  return Done{};
}

}  // namespace tilewright::rules
