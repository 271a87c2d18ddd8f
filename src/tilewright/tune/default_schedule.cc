#include "tilewright/tune/default_schedule.h"

#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"
#include "tilewright/tune/program_facts.h"
#include "tilewright/tune/register_tile.h"
#include "tilewright/tune/winograd_schedule.h"

namespace tilewright::tune {
namespace {

using schedule::Step;
using schedule::Trace;

/// Below this many operations a second thread costs more than it saves.
constexpr int64_t kParallelWork = 1 << 15;
/// A producer is recomputed at its uses rather than stored up to this cost and this many uses each.
constexpr int kCheapCost = 6;
constexpr int64_t kRecomputeLimit = 2;
/// Unrolled reduction steps of a small window, at most.
constexpr int64_t kWindowUnroll = 16;
/// Rows of padded input computed at a time: few enough to stay in cache, many enough that the rows
/// two strips share cost little.
constexpr int64_t kStripRows = 14;

/// Loops around a block in its present form, with their extents.
struct LoopNest {
  std::vector<std::string> names;
  std::vector<int64_t> extents;  ///< 0 where not constant
};

bool find_nest(const Stmt& s, const std::string& block, LoopNest& nest) {
  if (const Block* b = s.as<Block>()) return b->name == block;
  const For* loop = s.as<For>();
  if (loop != nullptr) {
    nest.names.push_back(loop->var.name());
    nest.extents.push_back(as_int(loop->extent).value_or(0));
  }
  for (const Stmt& child : children(s))
    if (find_nest(child, block, nest)) return true;
  if (loop != nullptr) nest.names.pop_back(), nest.extents.pop_back();
  return false;
}

class Scheduler {
 public:
  Scheduler(Func func, const hw::CpuTarget& target, int threads)
      : func_(std::move(func)), target_(target), threads_(threads) {}

  Trace run() {
    inline_injective();
    stage_outputs();
    for (const std::string& block : block_names(BlockFacts::Kind::Reduce)) reduction(block);
    for (const std::string& block : block_names(BlockFacts::Kind::Injective)) injective(block);
    for (const std::string& block : block_names(BlockFacts::Kind::Init)) injective(block);
    return std::move(trace_);
  }

 private:
  /// A point to return to when a group of steps turns out not to apply.
  struct Mark {
    Func func;
    size_t steps;
  };
  Mark mark() const { return {func_, trace_.size()}; }
  void revert(const Mark& to) {
    func_ = to.func;
    trace_.resize(to.steps);
  }

  bool attempt(Step step) {
    Result<Func> next = schedule::apply(step, func_);
    if (!next) return false;
    func_ = *std::move(next);
    trace_.push_back(std::move(step));
    return true;
  }

  std::vector<std::string> block_names(BlockFacts::Kind kind) const {
    std::vector<std::string> names;
    for (const BlockFacts& block : collect_blocks(func_))
      if (block.kind == kind && !done_.contains(block.name)) names.push_back(block.name);
    return names;
  }

  LoopNest nest_of(const std::string& block) const {
    LoopNest nest;
    find_nest(func_.body, block, nest);
    return nest;
  }

  /// Loops around `block` inside `outer` (all of them if `outer` is empty).
  LoopNest nest_inside(const std::string& block, const std::string& outer) const {
    LoopNest nest = nest_of(block);
    const auto it = std::find(nest.names.begin(), nest.names.end(), outer);
    if (it == nest.names.end()) return nest;
    const auto skip = it - nest.names.begin() + 1;
    nest.names.erase(nest.names.begin(), nest.names.begin() + skip);
    nest.extents.erase(nest.extents.begin(), nest.extents.begin() + skip);
    return nest;
  }

  // --- Injective blocks.

  /// Recomputing is worth it where the value is cheap or read about once per element.
  bool worth_inlining(const std::vector<BlockFacts>& blocks, const BlockFacts& producer) const {
    int64_t uses = 0;
    for (const BlockFacts* reader : readers(blocks, producer.store->buffer)) {
      if (reader->kind == BlockFacts::Kind::Other) return false;
      for (const Load& load : reader->loads)
        uses += load.buffer == producer.store->buffer ? reader->work() : 0;
      const bool staged = reader->kind == BlockFacts::Kind::Reduce && producer.cost > 0;
      if (staged && reader->work() > kRecomputeLimit * producer.work()) return false;
    }
    return producer.cost <= kCheapCost || uses <= producer.work();
  }

  void inline_injective() {
    std::set<std::string> refused;
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<BlockFacts> blocks = collect_blocks(func_);
      for (const BlockFacts& block : blocks) {
        if (block.kind != BlockFacts::Kind::Injective || refused.contains(block.name)) continue;
        if (is_output(func_, block.store->buffer) || !worth_inlining(blocks, block)) continue;
        const std::string name = block.name;
        changed = attempt(schedule::Inline{name});
        if (!changed) refused.insert(name);
        if (changed) break;
      }
    }
  }

  /// A reduction that writes an output directly gets a copy to accumulate in.
  void stage_outputs() {
    std::vector<std::string> names;
    for (const BlockFacts& block : collect_blocks(func_))
      if (block.kind == BlockFacts::Kind::Reduce && is_output(func_, block.store->buffer))
        names.push_back(block.name);
    for (const std::string& name : names) attempt(schedule::CacheWrite{name, name + ".acc", ""});
  }

  void injective(const std::string& name) {
    const LoopNest nest = nest_of(name);
    if (nest.names.empty()) return;
    int64_t work = 1;
    for (int64_t extent : nest.extents) work *= extent;
    vectorize_innermost(name);
    parallelize(name, work * cost_of(name));
  }

  int64_t cost_of(const std::string& name) const {
    const std::vector<BlockFacts> blocks = collect_blocks(func_);
    const BlockFacts* block = find_block(blocks, name);
    return block == nullptr ? 1 : 1 + block->cost;
  }

  /// Splits the innermost loop into vectors where its accesses allow.
  void vectorize_innermost(const std::string& name) {
    const std::vector<BlockFacts> blocks = collect_blocks(func_);
    const BlockFacts* block = find_block(blocks, name);
    if (block == nullptr || block->store == nullptr || block->store->indices.empty()) return;
    const LoopNest nest = nest_of(name);
    const int64_t extent = nest.extents.back();
    const int64_t lanes = target_.lanes(std::min(32, bit_width(block->store->buffer.dtype())));
    if (extent < 4 || extent == 0) return;
    const Mark before = mark();
    std::string loop = nest.names.back();
    if (extent > lanes) {
      if (!attempt(schedule::Split{loop, lanes})) return;
      if (extent % lanes != 0) ragged_.push_back(loop + ".o");
      loop += ".i";
    }
    if (!attempt(schedule::Vectorize{loop})) revert(before);
  }

  // --- Reductions.

  void reduction(const std::string& name) {
    const std::vector<BlockFacts> blocks = collect_blocks(func_);
    const BlockFacts* block = find_block(blocks, name);
    if (block == nullptr || block->work() == 0) return;
    const int64_t work = block->work();
    const std::optional<RegisterTile> tile = choose_register_tile(*block, target_);
    const Mark before = mark();
    ragged_.clear();
    if (!(tile ? tiled(*block, *tile) : row_by_row(*block))) {
      revert(before);
      return;
    }
    done_.insert(name);
    done_.insert(name + ".init");
    for (const std::string& loop : ragged_) cut_tail(loop);
    for (const std::string& piece : pieces_of(name)) parallelize(piece, work);
  }

  /// Blocks `name` has become: itself, or its parts after a cut.
  std::vector<std::string> pieces_of(const std::string& name) const {
    std::vector<std::string> pieces;
    for (const BlockFacts& block : collect_blocks(func_))
      if (block.name == name || block.name.starts_with(name + "@")) pieces.push_back(block.name);
    return pieces;
  }

  void cut_tail(const std::string& loop) {
    // The loop may itself have been cut into parts by an earlier cut around it.
    std::vector<std::pair<std::string, int64_t>> parts;
    walk(func_.body, [&](const Stmt& s) {
      const For* f = s.as<For>();
      if (f == nullptr) return;
      const std::string& n = f->var.name();
      if (n == loop || n.starts_with(loop + "@"))
        parts.emplace_back(n, as_int(f->extent).value_or(0));
    });
    for (const auto& [part, extent] : parts)
      if (extent > 1) attempt(schedule::Cut{part, {extent - 1, 1}});
  }

  /// Register tile: outer loops, reduction loops, then rows x columns x lanes in registers.
  bool tiled(const BlockFacts& block, const RegisterTile& tile) {
    const std::string name = block.name;
    const Buffer accumulator = block.store->buffer;
    std::vector<std::string> reduce, outer, batch;
    std::vector<int64_t> reduce_extents;
    for (const Iter& iter : block.block->iters) {
      const std::string loop = block.loop_of(iter.var);
      if (loop.empty()) return false;
      if (iter.kind == IterKind::Reduce) {
        reduce.push_back(loop);
        reduce_extents.push_back(as_int(iter.extent).value_or(0));
      } else if (loop != tile.vec.loop && loop != tile.row.loop && loop != tile.column.loop) {
        batch.push_back(loop);
      }
    }
    const std::string padding = staged_producer(block, batch);
    std::string strip;
    if (!padding.empty()) split_strip(block, batch, strip);
    std::vector<std::string> inner;
    std::string row_outer, column_outer, vec_outer;
    split_row_and_column(tile, inner, row_outer, column_outer);
    const std::string vec_inner = split_vector(tile, inner, vec_outer);
    // Weights of a column stay in cache while the rows pass: columns outside, rows inside.
    const size_t leading = std::min<size_t>(batch.size(), 1);
    outer.assign(batch.begin(), batch.begin() + static_cast<long>(leading));
    for (const std::string& loop : {column_outer, vec_outer})
      if (!loop.empty()) outer.push_back(loop);
    outer.insert(outer.end(), batch.begin() + static_cast<long>(leading), batch.end());
    if (!row_outer.empty()) outer.push_back(row_outer);
    std::vector<std::string> order = outer;
    order.insert(order.end(), reduce.begin(), reduce.end());
    order.insert(order.end(), inner.begin(), inner.end());
    if (order.size() > 1 && !attempt(schedule::Reorder{order})) return false;
    if (outer.empty()) return false;
    const std::string anchor = outer.back();
    if (!strip.empty() && attempt(schedule::ComputeAt{padding, strip})) {
      done_.insert(padding);
      vectorize_innermost(padding);
    }
    if (!attempt(schedule::ComputeAt{name + ".init", anchor})) return false;
    const bool fused = fuse_epilogue(accumulator, anchor);
    if (fused) attempt(schedule::SetScope{accumulator.name(), "local"});
    for (size_t i = 0; i + 1 < inner.size(); ++i) attempt(schedule::Unroll{inner[i]});
    if (!attempt(schedule::Vectorize{vec_inner})) return false;
    tile_registers(name + ".init", anchor);
    if (fused)
      for (const std::string& reader : epilogue_) tile_registers(reader, anchor);
    unroll_window(reduce, reduce_extents);
    return true;
  }

  /// The block that pads this block's input, if nobody else reads it and each of `loops` selects
  /// another part of it: then it can be computed strip by strip without computing anything twice.
  std::string staged_producer(const BlockFacts& block,
                              const std::vector<std::string>& loops) const {
    const std::vector<BlockFacts> blocks = collect_blocks(func_);
    for (const Load& load : block.loads) {
      const BlockFacts* producer = nullptr;
      for (const BlockFacts& candidate : blocks)
        if (candidate.kind == BlockFacts::Kind::Injective && candidate.store->buffer == load.buffer)
          producer = &candidate;
      if (producer == nullptr || is_output(func_, load.buffer)) continue;
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

  /// Cuts the last outer loop into strips of a few rows; `strip` becomes the loop over strips.
  void split_strip(const BlockFacts& block, std::vector<std::string>& loops, std::string& strip) {
    if (loops.empty()) return;
    int64_t extent = 1;
    for (const Iter& iter : block.block->iters)
      if (block.loop_of(iter.var) == loops.back()) extent = as_int(iter.extent).value_or(1);
    int64_t rows = std::min<int64_t>(kStripRows, extent);
    while (rows > 1 && extent % rows != 0) --rows;
    if (rows < 4 || !attempt(schedule::Split{loops.back(), rows})) return;
    strip = loops.back() + ".o";
    const std::string inside = loops.back() + ".i";
    loops.back() = strip;
    loops.push_back(inside);
  }

  void split_row_and_column(const RegisterTile& tile, std::vector<std::string>& inner,
                            std::string& row_outer, std::string& column_outer) {
    auto split = [&](const TiledLoop& t, std::string& outer) {
      if (t.loop.empty()) return;
      if (t.tile == t.extent) {
        inner.push_back(t.loop);
      } else if (t.tile == 1) {
        outer = t.loop;
      } else if (attempt(schedule::Split{t.loop, t.tile})) {
        outer = t.loop + ".o";
        inner.push_back(t.loop + ".i");
        if (!t.exact()) ragged_.push_back(outer);
      } else {
        outer = t.loop;
      }
    };
    split(tile.row, row_outer);
    split(tile.column, column_outer);
  }

  /// Splits the lanes off; returns the loop to vectorise (also the last of `inner`).
  std::string split_vector(const RegisterTile& tile, std::vector<std::string>& inner,
                           std::string& outer) {
    std::string loop = tile.vec.loop;
    if (tile.vec.tile < tile.vec.extent && attempt(schedule::Split{loop, tile.vec.tile})) {
      outer = loop + ".o";
      if (!tile.vec.exact()) ragged_.push_back(outer);
      loop += ".i";
    }
    if (tile.vectors > 1 && attempt(schedule::Split{loop, tile.vec.tile / tile.vectors})) {
      inner.push_back(loop + ".o");
      loop += ".i";
    }
    inner.push_back(loop);
    return loop;
  }

  /// Moves the readers of the accumulator into the tile; true if all moved, so that it can be
  /// local.
  bool fuse_epilogue(const Buffer& accumulator, const std::string& anchor) {
    epilogue_.clear();
    std::vector<std::string> names;
    const std::vector<BlockFacts> blocks = collect_blocks(func_);
    for (const BlockFacts* reader : readers(blocks, accumulator))
      if (reader->store == nullptr || reader->store->buffer.name() != accumulator.name())
        names.push_back(reader->name);
    for (const std::string& name : names) {
      const BlockFacts* reader = find_block(blocks, name);
      if (reader->kind != BlockFacts::Kind::Injective) return false;
    }
    for (const std::string& name : names)
      if (!attempt(schedule::ReverseComputeAt{name, anchor})) return false;
    for (const std::string& name : names) done_.insert(name);
    epilogue_ = names;
    return !names.empty();
  }

  /// Vectorises the innermost loop of a block inside the tile by native vectors and unrolls the
  /// rest.
  void tile_registers(const std::string& name, const std::string& anchor) {
    LoopNest nest = nest_inside(name, anchor);
    if (nest.names.empty()) return;
    std::string last = nest.names.back();
    const std::vector<BlockFacts> blocks = collect_blocks(func_);
    const BlockFacts* block = find_block(blocks, name);
    const DType dtype = accumulator_type(block);
    const int64_t lanes = target_.lanes(bit_width(dtype));
    if (nest.extents.back() > lanes && attempt(schedule::Split{last, lanes})) {
      attempt(schedule::Unroll{last + ".o"});
      last += ".i";
    }
    attempt(schedule::Vectorize{last});
    for (size_t i = 0; i + 1 < nest.names.size(); ++i) attempt(schedule::Unroll{nest.names[i]});
  }

  DType accumulator_type(const BlockFacts* block) const {
    if (block == nullptr || block->store == nullptr) return DType::F32;
    DType dtype = block->store->buffer.dtype();
    for (const Load& load : block->loads)
      if (bit_width(load.buffer.dtype()) > bit_width(dtype)) dtype = load.buffer.dtype();
    return dtype;
  }

  /// Small windows (3x3 and less, few input channels) are unrolled so that their loads are shared.
  void unroll_window(const std::vector<std::string>& reduce, const std::vector<int64_t>& extents) {
    int64_t unrolled = 1;
    for (size_t i = reduce.size(); i-- > 0;) {
      unrolled *= std::max<int64_t>(extents[i], 1);
      if (unrolled > kWindowUnroll) return;
      attempt(schedule::Unroll{reduce[i]});
    }
  }

  /// No axis of the result runs along lanes: one result at a time, the sum itself in lanes.
  bool row_by_row(const BlockFacts& block) {
    const std::string name = block.name;
    const Buffer accumulator = block.store->buffer;
    std::vector<std::string> space;
    for (const Iter& iter : block.block->iters)
      if (iter.kind == IterKind::Space) space.push_back(block.loop_of(iter.var));
    if (space.empty() || space.back().empty()) return false;
    const std::string anchor = space.back();
    if (!attempt(schedule::ComputeAt{name + ".init", anchor})) return false;
    fuse_epilogue(accumulator, anchor);
    return true;
  }

  // --- Threads.

  void parallelize(const std::string& block, int64_t work) {
    if (threads_ < 2 || work < kParallelWork) return;
    const int64_t enough = 8 * threads_;
    for (;;) {
      const LoopNest nest = nest_of(block);
      if (nest.names.empty()) return;
      const Mark before = mark();
      if (nest.names.size() > 1 && nest.extents[0] < enough &&
          attempt(schedule::Fuse{nest.names[0], nest.names[1]})) {
        // Keep the fused loop only if it can run in parallel: the inner one may be a reduction.
        const std::string fused = nest_of(block).names[0];
        if (schedule::apply(schedule::Parallel{fused}, func_)) continue;
        revert(before);
      }
      if (nest.extents[0] > 1) attempt(schedule::Parallel{nest.names[0]});
      return;
    }
  }

  Func func_;
  Trace trace_;
  const hw::CpuTarget& target_;
  int threads_;
  std::set<std::string> done_;         ///< blocks placed inside another nest
  std::vector<std::string> ragged_;    ///< loops whose last iteration is partial
  std::vector<std::string> epilogue_;  ///< blocks moved into the present tile
};

}  // namespace

schedule::Trace default_trace(const Func& func, const hw::CpuTarget& target, int threads) {
  if (std::optional<schedule::Trace> winograd = winograd_trace(func, target, threads))
    return *std::move(winograd);
  return Scheduler(func, target, threads).run();
}

}  // namespace tilewright::tune
