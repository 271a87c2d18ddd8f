#include "tilewright/rules/cpu/tile_padding.h"

#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/integers.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/borders.h"

namespace tilewright::rules {
namespace {

/// Rows of results that a strip of padded input has at least: shorter ones cost more in loops than
/// they save in copies.
constexpr int64_t kLeastStripRows = 4;
/// Rows up to which strips cost threads nothing. source: 7x110x47 to 131, 4x4, on two cores of a
/// Zen 4 takes 1.0 as long in strips of 14 and of 19 rows, 1.1 of 28, 1.4 of 55
/// (bench/results/cpu.md).
constexpr int64_t kStripRows = 14;

/// Whether `block` finishes a reduction: that is work to do once.
bool reads_a_sum(const std::vector<BlockFacts>& blocks, const BlockFacts& block) {
  return std::any_of(block.loads.begin(), block.loads.end(), [&](const Load& load) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const BlockFacts& b) {
      return b.kind == BlockFacts::Kind::Reduce && b.store->buffer == load.buffer;
    });
  });
}

}  // namespace

bool has_select(const BlockFacts& block) {
  bool found = false;
  walk(block.store->value, [&](const Expr& e) { found |= e.as<Select>() != nullptr; });
  return found;
}

bool reads_through_padding(const BlockFacts& reader, const BlockFacts& padding) {
  if (reader.kind != BlockFacts::Kind::Reduce || padding.store->value.as<Select>() == nullptr)
    return false;
  int64_t taps = 1;
  for (const Iter& iter : reader.block->iters)
    if (iter.kind == IterKind::Reduce) taps *= as_int(iter.extent).value_or(kWindowTaps + 1);
  if (taps > kWindowTaps || reader.store->indices.empty()) return false;
  // Instructions for products of bytes read pixels as they lie in memory.
  if (bit_width(padding.store->buffer.dtype()) == 8 && product_of(reader)) return false;
  const VarRef* lane = reader.store->indices.back().as<VarRef>();
  for (const Load& load : reader.loads) {
    if (!(load.buffer == padding.store->buffer)) continue;
    const VarRef* last = load.indices.back().as<VarRef>();
    if (lane == nullptr || last == nullptr || !(last->var == lane->var)) return false;
  }
  const VarRef* stored = padding.store->indices.back().as<VarRef>();
  return stored != nullptr && !uses(padding.store->value.as<Select>()->condition, stored->var);
}

std::string staged_producer(const Draft& draft, const BlockFacts& block,
                            const std::vector<std::string>& loops) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  for (const Load& load : block.loads) {
    const BlockFacts* producer = nullptr;
    for (const BlockFacts& candidate : blocks)
      if (candidate.kind == BlockFacts::Kind::Injective && candidate.store->buffer == load.buffer)
        producer = &candidate;
    if (producer == nullptr || is_output(draft.func(), load.buffer)) continue;
    if (reads_a_sum(blocks, *producer)) continue;
    if (readers(blocks, load.buffer).size() != 1) continue;
    bool partitioned = true;
    for (const Iter& iter : block.block->iters) {
      const bool outer =
          std::find(loops.begin(), loops.end(), block.loop_of(iter.var)) != loops.end();
      if (outer && as_int(iter.extent) != int64_t{1}) partitioned &= mentions(load, iter.var);
    }
    if (partitioned) return producer->name;
  }
  return "";
}

int64_t iterations_that_share(const BlockFacts& reader, const BlockFacts& padding,
                              const std::string& loop) {
  const auto runs_in = [&](const Expr& e) {
    const auto* read = e.as<VarRef>();
    return read != nullptr && reader.loop_of(read->var) == loop;
  };
  int64_t shared = 0, all = 0, divided = 0;
  for (const Load& load : reader.loads) {
    if (!(load.buffer == padding.store->buffer)) continue;
    for (const Expr& index : load.indices)
      walk(index, [&](const Expr& e) {
        all += runs_in(e) ? 1 : 0;
        const auto* quotient = e.as<Binary>();
        if (quotient == nullptr || quotient->op != BinaryOp::Div || !runs_in(quotient->a)) return;
        const int64_t divisor = as_int(quotient->b).value_or(1);
        divided += shared == 0 || shared == divisor ? 1 : 0;
        shared = divisor;
      });
  }
  return shared > 1 && divided == all ? shared : 1;
}

int64_t most_strip_rows(int64_t between) { return std::max(kStripRows, 3 * between); }

int64_t rows_between_strips(const BlockFacts& reader, const BlockFacts& padding,
                            const std::string& loop) {
  int64_t most = 0;
  for (const Load& load : reader.loads) {
    if (!(load.buffer == padding.store->buffer)) continue;
    for (size_t axis = 0; axis < load.indices.size(); ++axis)
      for (const Iter& iter : reader.block->iters) {
        const int64_t stride = arith::as_affine(load.indices[axis]).coefficient(iter.var);
        if (stride <= 0 || reader.loop_of(iter.var) != loop) continue;
        const int64_t read = as_int(load.buffer.shape()[axis]).value_or(0);
        most = std::max(
            most, ceil_div(std::max<int64_t>(read, 0), stride) - as_int(iter.extent).value_or(0));
      }
  }
  return most;
}

int64_t rows_of_strip(const PaddedRows& all, int threads, int64_t l2_bytes) {
  for (const bool even : {true, false}) {
    int64_t best = 0, fewest = 0;  // rows of the thread with most of them
    bool fits = false;
    const int64_t least = std::max(kLeastStripRows, all.between);
    for (int64_t rows = std::min(all.extent, all.most); rows >= least; --rows) {
      if (rows != all.extent && rows % all.tile != 0) continue;
      if (even && all.extent % rows != 0) continue;
      const int64_t strips = all.around * ceil_div(all.extent, rows);
      const int64_t busiest = ceil_div(strips, threads) * rows;
      if (8 * busiest * threads > 9 * all.around * all.extent) continue;
      if (fits && busiest >= fewest) continue;
      best = rows, fewest = busiest;
      fits = all.bytes / strips <= l2_bytes / 2;
    }
    if (best > 0) return best;
  }
  return 0;
}

void cut_padding(Draft& draft, const std::string& name) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr || !has_select(*block)) return;
  // The lanes stay whole; of the loops around them the two innermost run often enough to matter.
  const LoopNest nest = draft.nest_of(name);
  const size_t depth = nest.names.size();
  for (size_t i = depth - std::min<size_t>(depth, 3); i + 1 < depth; ++i)
    cut_borders(draft, name, nest.names[i], false);
}

}  // namespace tilewright::rules
