// What a sketch leaves serial: blocks inside its loops, and nests it does not mention.
#include <algorithm>
#include <map>
#include <set>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/common_steps.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/rules/cpu/tile_padding.h"
#include "tilewright/tune/sketch_space.h"

namespace tilewright::tune {
namespace {

/// Vectors a block may be written out in.
constexpr int64_t kWrittenVectors = 64;

std::map<std::string, ForKind> kinds_of(const Func& func) {
  std::map<std::string, ForKind> kinds;
  walk(func.body, [&](const Stmt& s) {
    if (const For* loop = s.as<For>()) kinds[loop->var.name()] = loop->kind;
  });
  return kinds;
}

/// The innermost loop around `block` that other blocks are in too; empty if there is none.
std::string shared_loop(const std::vector<rules::BlockFacts>& blocks,
                        const rules::BlockFacts& block) {
  for (size_t i = block.loops.size(); i-- > 0;)
    for (const rules::BlockFacts& other : blocks)
      if (other.name != block.name &&
          std::find(other.loops.begin(), other.loops.end(), block.loops[i]) != other.loops.end())
        return block.loops[i];
  return "";
}

/// Whether `block` sets sums to their first values, or is the one to read finished ones.
bool ends_sums(const std::vector<rules::BlockFacts>& blocks, const rules::BlockFacts& block) {
  if (block.kind == rules::BlockFacts::Kind::Init) return true;
  return std::any_of(block.loads.begin(), block.loads.end(), [&](const Load& load) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const rules::BlockFacts& b) {
      return b.kind == rules::BlockFacts::Kind::Reduce && b.store->buffer == load.buffer;
    });
  });
}

/// Lanes along the last loop, the others unrolled: indices of sums become constants.
void write_out(rules::Draft& draft, const std::string& name, const std::string& around,
               const hw::CpuTarget& target) {
  rules::LoopNest nest = draft.nest_inside(name, around);
  while (!nest.names.empty() && nest.extents.back() == 1)
    nest.names.pop_back(), nest.extents.pop_back();
  if (nest.names.empty() || !draft.attempt(schedule::Vectorize{nest.names.back()})) return;
  const int64_t lanes = target.lanes(32);
  int64_t vectors = (nest.extents.back() + lanes - 1) / lanes;
  for (size_t i = nest.names.size() - 1; i-- > 0;) {
    vectors *= nest.extents[i];
    if (nest.extents[i] == 0 || vectors > kWrittenVectors) return;
    draft.attempt(schedule::Unroll{nest.names[i]});
  }
}

/// Sums that are set and finished in one loop are nobody else's: they may stay in registers.
void keep_sums(rules::Draft& draft, const std::string& name) {
  const std::vector<rules::BlockFacts> blocks = draft.blocks();
  const rules::BlockFacts* sums = rules::find_block(blocks, name);
  const std::string around = shared_loop(blocks, *sums);
  const auto inside = [&](const rules::BlockFacts& block) {
    return std::find(block.loops.begin(), block.loops.end(), around) != block.loops.end();
  };
  const Buffer buffer = sums->store->buffer;
  if (around.empty() || rules::is_output(draft.func(), buffer)) return;
  const auto all = readers(blocks, buffer);
  if (std::all_of(all.begin(), all.end(), [&](const rules::BlockFacts* b) { return inside(*b); }))
    draft.attempt(schedule::SetScope{buffer.name(), "local"});
}

}  // namespace

void finish_draft(rules::Draft& draft, const hw::CpuTarget& target, int threads) {
  std::vector<std::string> names;
  for (const rules::BlockFacts& block : draft.blocks()) names.push_back(block.name);
  for (const std::string& name : names) {
    const std::vector<rules::BlockFacts> blocks = draft.blocks();
    const rules::BlockFacts* block = rules::find_block(blocks, name);
    if (block == nullptr || block->store == nullptr) continue;
    const std::map<std::string, ForKind> kinds = kinds_of(draft.func());
    const std::string around = shared_loop(blocks, *block);
    const size_t own =
        around.empty()
            ? 0
            : static_cast<size_t>(std::find(block->loops.begin(), block->loops.end(), around) -
                                  block->loops.begin()) +
                  1;
    const bool touched =
        std::any_of(block->loops.begin() + static_cast<long>(own), block->loops.end(),
                    [&](const std::string& loop) { return kinds.at(loop) != ForKind::Serial; });
    if (around.empty() && !touched) continue;
    draft.done.insert(name);
    if (block->kind == rules::BlockFacts::Kind::Reduce) keep_sums(draft, name);
    if (touched || block->kind == rules::BlockFacts::Kind::Reduce) continue;
    if (ends_sums(blocks, *block)) {
      write_out(draft, name, around, target);
    } else {
      rules::vectorize_innermost(draft, name, target);
      rules::cut_padding(draft, name);
    }
  }
  rules::finish_schedule(draft, target, threads);
}

}  // namespace tilewright::tune
