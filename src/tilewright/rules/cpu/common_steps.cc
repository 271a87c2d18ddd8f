#include "tilewright/rules/cpu/common_steps.h"

#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/strip_steps.h"
#include "tilewright/rules/cpu/transpose.h"

namespace tilewright::rules {
namespace {

/// Vectors that a block behind a tile computes in straight code, at most, where it has loops of its
/// own: as many as there are registers on any target.
constexpr int64_t kStraightVectors = 32;

/// Loops along which block `name` neither reads nor writes a tile in registers, although it does so
/// along others.
std::set<std::string> loops_beside_tile(const Draft& draft, const std::string& name) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* found = find_block(blocks, name);
  if (found == nullptr || found->store == nullptr) return {};
  const BlockFacts& block = *found;
  std::vector<Load> in_registers;
  for (const Load& load : block.loads)
    if (load.buffer.scope() == "local") in_registers.push_back(load);
  if (block.store->buffer.scope() == "local")
    in_registers.push_back({block.store->buffer, block.store->indices});
  std::set<std::string> beside;
  for (const Iter& iter : block.block->iters) {
    const auto moves = [&](const Load& load) { return mentions(load, iter.var); };
    if (!in_registers.empty() && std::none_of(in_registers.begin(), in_registers.end(), moves))
      beside.insert(block.loop_of(iter.var));
  }
  return beside;
}

}  // namespace

std::vector<std::string> fuse_readers(Draft& draft, const Buffer& accumulator,
                                      const std::string& anchor) {
  std::vector<std::string> names;
  for (const std::vector<BlockFacts> blocks = draft.blocks();
       const BlockFacts* reader : readers(blocks, accumulator)) {
    if (reader->store != nullptr && reader->store->buffer.name() == accumulator.name()) continue;
    if (reader->kind != BlockFacts::Kind::Injective) return {};
    names.push_back(reader->name);
  }
  const Draft::Mark before = draft.mark();
  for (const std::string& name : names)
    if (!draft.attempt(schedule::ReverseComputeAt{name, anchor})) {
      draft.revert(before);
      return {};
    }
  draft.done.insert(names.begin(), names.end());
  return names;
}

std::string split_period(Draft& draft, const std::string& name) {
  constexpr int64_t kLeastPeriod = 8;  // elements: shorter ones are less than most vectors
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  const LoopNest nest = draft.nest_of(name);
  if (block == nullptr || nest.names.empty()) return "";
  const std::string& loop = nest.names.back();
  int64_t period = 0;
  const auto note = [&](const Expr& e) {
    const auto* part = e.as<Binary>();
    if (part == nullptr || (part->op != BinaryOp::Mod && part->op != BinaryOp::Div)) return;
    const auto* var = part->a.as<VarRef>();
    const int64_t by = as_int(part->b).value_or(0);
    if (var != nullptr && block->loop_of(var->var) == loop && by >= kLeastPeriod &&
        by < nest.extents.back() && nest.extents.back() % by == 0)
      period = by;
  };
  for (const Load& load : block->loads)
    for (const Expr& index : load.indices) walk(index, note);
  return period > 0 && draft.attempt(schedule::Split{loop, period}) ? loop + ".i" : "";
}

void vectorize_innermost(Draft& draft, const std::string& name, const hw::CpuTarget& target,
                         int64_t registers) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr || block->store == nullptr || block->store->indices.empty()) return;
  const LoopNest nest = draft.nest_of(name);
  // Behind the last loop that has iterations stand those of axes with one element.
  size_t last = nest.extents.size() - 1;
  while (last > 0 && nest.extents[last] == 1) --last;
  const int64_t extent = nest.extents[last];
  const int64_t lanes =
      registers * target.lanes(std::min(32, bit_width(block->store->buffer.dtype())));
  if (extent < 4) return;
  const Draft::Mark before = draft.mark();
  std::string loop = nest.names[last];
  if (last + 1 < nest.names.size()) {
    std::vector<std::string> order(nest.names.begin() + static_cast<long>(last) + 1,
                                   nest.names.end());
    order.push_back(loop);
    if (!draft.attempt(schedule::Reorder{order})) return;
  }
  if (extent > lanes) {
    if (!draft.attempt(schedule::Split{loop, lanes})) return;
    loop += ".i";
  }
  if (!draft.attempt(schedule::Vectorize{loop})) draft.revert(before);
}

void rows_outside(Draft& draft, const std::string& name) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr || block->store == nullptr || block->store->value.as<Select>() != nullptr)
    return;
  const std::vector<Expr>& indices = block->store->indices;
  if (indices.size() <= kRowAxis + 1 || indices[kRowAxis].as<VarRef>() == nullptr) return;
  if (turns(*block) && ends_within_line(block->store->buffer, kRowAxis)) return;
  const Iter* row = block->iter(indices[kRowAxis].as<VarRef>()->var);
  std::set<std::string> loops;  // that run the rows, or parts of them; those of a tile do not count
  walk(draft.func().body, [&](const Stmt& s) {
    const For* loop = s.as<For>();
    if (loop != nullptr && loop->kind == ForKind::Serial && uses(row->binding, loop->var))
      loops.insert(loop->var.name());
  });
  const LoopNest nest = draft.nest_of(name);
  const auto at = std::find_if(nest.names.begin(), nest.names.end(),
                               [&](const std::string& loop) { return loops.contains(loop); });
  if (at != nest.names.end()) draft.move_outward(name, *at);
}

void write_out(Draft& draft, const std::string& name, const LoopNest& loops) {
  int64_t vectors = 1;
  for (const int64_t extent : loops.extents) vectors *= extent;
  std::set<std::string> beside;
  if (vectors > kStraightVectors) beside = loops_beside_tile(draft, name);
  for (const std::string& loop : loops.names)
    if (!beside.contains(loop)) draft.attempt(schedule::Unroll{loop});
}

void share_piece(Draft& draft, const std::string& piece) {
  const size_t cut = piece.find('@');
  if (cut == std::string::npos) return;
  const LoopNest nest = draft.nest_of(piece);
  size_t own = 0;  // loops around other pieces, too
  for (const std::string& other : draft.pieces_of(piece.substr(0, cut))) {
    if (other == piece) continue;
    const LoopNest beside = draft.nest_of(other);
    const auto apart = std::mismatch(nest.names.begin(), nest.names.end(), beside.names.begin(),
                                     beside.names.end());
    own = std::max(own, static_cast<size_t>(apart.first - nest.names.begin()));
  }
  std::set<std::string> shared;
  walk(draft.func().body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (loop != nullptr && loop->kind == ForKind::Parallel) shared.insert(loop->var.name());
  });
  const auto is_shared = [&](const std::string& loop) { return shared.contains(loop); };
  if (std::any_of(nest.names.begin(), nest.names.end(), is_shared)) return;
  for (size_t i = own; i < nest.names.size(); ++i) {
    if (nest.extents[i] != 1) continue;
    draft.attempt(schedule::Parallel{nest.names[i]});
    return;
  }
}

}  // namespace tilewright::rules
