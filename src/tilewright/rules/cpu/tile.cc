// The schedule of a contraction in register tiles on a CPU; the cost model chooses sizes and order.
//
//   C[m, n] += A[m, k] * B[k, n], tile of 6 rows x 2 vectors
//   =>
//   for n.o, m.o { set 6x2 accumulators
//                  for k { 2 loads of B, 6 broadcasts of A, 12 multiply-adds }
//                  what reads C: bias, activation, the store }
//
// Loops are split into those around the tile and those in it, which are unrolled and, the last,
// vectorised. Initial values and element-wise readers are computed inside, so accumulators stay in
// registers. Padding in front of a convolution is made for a block of rows at a time. At the end
// partial tiles, tiles at the border and taps in the padding are split off into loops of their own.
#include "tilewright/rules/cpu/tile.h"

#include <algorithm>
#include <set>

#include "tilewright/base/integers.h"
#include "tilewright/cost/tile_space.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/borders.h"
#include "tilewright/rules/cpu/common_steps.h"
#include "tilewright/rules/cpu/skip_padding.h"
#include "tilewright/rules/cpu/tile_facts.h"
#include "tilewright/rules/cpu/tile_padding.h"
#include "tilewright/rules/cpu/transpose.h"

namespace tilewright::rules {
namespace {

/// Unrolled reduction steps of a small window, at most.
constexpr int64_t kWindowUnroll = 16;
/// Steps of a register tile written out: each is long, and LLVM lifts loads of later ones until
/// registers spill.
constexpr int64_t kTileSteps = 3;
/// The same for tiles that leave registers over: a whole last loop of so many steps, or, if there
/// are several columns, a part of a longer one. Weights from L2 come sooner then (each load of the
/// loop runs through memory in larger steps). A part gains nothing for one column, and of two steps
/// LLVM swaps the sums between two sets of registers and spills them. Measured with 16 registers
/// of 32 bytes (bench/results/cpu.md); with 32 it was not, so tiles there stay as they are.
constexpr int64_t kWholeLoop = 8, kPartOfLoop = 4, kLeastPart = 3, kFewRegisters = 16;
/// Rows per thread from which windows share out rows: of fewer, neighbours read too many in common,
/// and products on such planes divide channels, too.
constexpr int64_t kLeastShared = 8;

class TileRule {
 public:
  TileRule(Draft& draft, std::string name, const RegisterTile& tile, const hw::CpuTarget& target,
           int threads)
      : draft_(draft), name_(std::move(name)), tile_(tile), target_(target), threads_(threads) {}

  bool run() {
    const Draft::Mark before = draft_.mark();  // keeps the facts below alive
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts& block = *find_block(blocks, name_);
    const Buffer accumulator = block.store->buffer;
    if (!sort_loops(block)) return false;
    const int64_t weights = bytes_of_weights(draft_.func(), block, tile_, reduce_extents_);
    rows_first_ = !tile_.reuse && threads_ > 1 && !batch_.empty() &&
                  extent_of_loop(block, batch_.back()) >= kLeastShared * threads_;
    const bool skips = tile_.reuse && skips_padding(block);
    const std::optional<RowTiles> skipped = skips ? row_tiles(block, tile_.row) : std::nullopt;
    const bool bordered = !skips && has_select(block);
    const std::string padding = bordered || skips ? "" : staged_producer(draft_, block, batch_);
    if (!padding.empty()) split_strip(block, padding);
    if (!padding.empty() && strip_.empty()) split_columns(block, padding);
    if (bordered && tile_.block == 0) split_for_threads(block);
    const bool blocked = tile_.block > 0 && strip_.empty(), by_rows = batch_.size() < 2;
    if (blocked && !by_rows && split_last(tile_.block)) block_ = batch_[batch_.size() - 2];
    split_plane(block);
    split_row_and_column();
    if (blocked && by_rows) split_row_block();
    split_vector();
    if (outer_loops().empty()) enclose();
    const std::vector<std::string> outer = outer_loops();
    if ((outer.empty() && draft_.kept.empty()) || !reorder(outer)) return false;
    const std::string anchor = outer.empty() ? draft_.kept.back() : outer.back();
    if (!strip_.empty() && draft_.attempt(schedule::ComputeAt{padding, strip_})) {
      draft_.done.insert(padding);
      vectorize_innermost(draft_, padding, target_);
      cut_padding(draft_, padding);
    }
    if (!draft_.attempt(schedule::ComputeAt{init_of(name_), anchor})) return false;
    const std::vector<std::string> epilogue = fuse_readers(draft_, accumulator, anchor);
    if (!epilogue.empty()) draft_.attempt(schedule::SetScope{accumulator.name(), "local"});
    for (size_t i = 0; i + 1 < inner_.size(); ++i) draft_.attempt(schedule::Unroll{inner_[i]});
    if (!draft_.attempt(schedule::Vectorize{inner_.back()})) return false;
    tile_registers(init_of(name_), anchor);
    for (const std::string& reader : epilogue) finish_tile(reader, anchor);
    int64_t steps = 1;  // of the last loop that became one iteration
    if (tile_.unroll > 0) {
      steps = unroll_steps(tile_.unroll);
    } else if (const int64_t limit = steps_to_write_out(); tile_.reuse && !bordered && limit > 1) {
      steps = unroll_steps(limit, kLeastPart);
    } else {
      unroll_window(bordered ? kWindowTaps : tile_.reuse ? kTileSteps : kWindowUnroll);
    }
    const int64_t ahead = (tile_.ahead + steps - 1) / steps;
    if (ahead > 0 && !reduce_.empty())
      draft_.attempt(schedule::SetMark{reduce_.back(), "prefetch", std::to_string(ahead)});
    if (ahead > 0) fetch_next_weights(weights);
    cut(bordered, skipped.has_value());
    if (skipped && row_block_.empty()) cut_taps(draft_, *skipped, row_outer_);
    return true;
  }

 private:
  bool sort_loops(const BlockFacts& block) {
    for (const Iter& iter : block.block->iters) {
      const std::string loop = block.loop_of(iter.var);
      if (as_int(iter.binding)) continue;  // made anew inside loops that leave it one value
      if (loop.empty()) return false;
      if (iter.kind == IterKind::Reduce) {
        if (slides(block, tile_, iter.var)) sliding_.insert(loop);
        reduce_.push_back(loop);
        reduce_extents_.push_back(as_int(iter.extent).value_or(0));
      } else if (std::find(draft_.kept.begin(), draft_.kept.end(), loop) == draft_.kept.end() &&
                 loop != tile_.vec.loop && loop != tile_.row.loop && loop != tile_.column.loop) {
        batch_.push_back(loop);
      }
    }
    return true;
  }

  /// Cuts the last outer loop into strips whose padded input fits half the L2 cache; `strip_`
  /// becomes the loop over strips. Threads share the strips, so there must be enough of them.
  /// Iterations of the loop around that read one padded input go inside the strips.
  void split_strip(const BlockFacts& block, const std::string& padding) {
    if (batch_.empty()) return;
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts& input = *find_block(blocks, padding);
    const std::string filters = batch_.size() > 1 ? batch_[batch_.size() - 2] : "";
    int64_t share = filters.empty() ? 1 : iterations_that_share(block, input, filters);
    if (extent_of_loop(block, filters) % share != 0) share = 1;
    const int64_t bytes = input.work() * bit_width(input.store->buffer.dtype()) / 8;
    const int64_t extent = extent_of_loop(block, batch_.back());
    const int64_t between = rows_between_strips(block, input, batch_.back());
    const PaddedRows padded = {.extent = extent,
                               .tile = batch_.back() == tile_.plane.loop ? tile_.plane.tile : 1,
                               .between = between,
                               .most = most_strip_rows(between),
                               .around = iterations_around(block) / share,
                               .bytes = bytes};
    int64_t best = extent % std::max<int64_t>(tile_.block, 1) == 0 ? tile_.block : 0;
    if (tile_.block == 0) best = rows_of_strip(padded, threads_, target_.l2_bytes);
    if (best == 0 || !split_last(best)) return;
    strip_ = batch_[batch_.size() - 2];
    rows_per_strip_ = best;
    if (share == 1 || !draft_.attempt(schedule::Split{filters, share})) return;
    batch_[batch_.size() - 3] = filters + ".o";
    batch_.insert(batch_.end() - 1, filters + ".i");
  }

  /// The same where the columns of the tile are rows of the padded plane, as they are where lanes
  /// run along its rows: `batch_` ends with the loop over strips of them.
  void split_columns(const BlockFacts& block, const std::string& padding) {
    TiledLoop& column = tile_.column;
    std::vector<std::string> loops = batch_;
    loops.push_back(column.loop);
    if (column.loop.empty() || staged_producer(draft_, block, loops) != padding) return;
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts& input = *find_block(blocks, padding);
    int64_t around = 1;
    for (const std::string& loop : batch_) around *= extent_of_loop(block, loop);
    const int64_t bytes = input.work() * bit_width(input.store->buffer.dtype()) / 8;
    const PaddedRows padded = {.extent = column.extent,
                               .tile = column.tile,
                               .between = rows_between_strips(block, input, column.loop),
                               .most = column.extent,
                               .around = around,
                               .bytes = bytes};
    const int64_t rows = rows_of_strip(padded, threads_, target_.l2_bytes);
    if (rows == column.extent && around > 1) strip_ = batch_.back();
    if (rows == 0 || rows == column.extent || !draft_.attempt(schedule::Split{column.loop, rows}))
      return;
    strip_ = column.loop + ".o";
    batch_.push_back(strip_);
    column = {column.loop + ".i", rows, std::min(column.tile, rows)};
  }

  /// Iterations of the loops around the last outer one.
  int64_t iterations_around(const BlockFacts& block) const {
    int64_t around = 1;
    for (size_t i = 0; i + 1 < batch_.size(); ++i) around *= extent_of_loop(block, batch_[i]);
    return around;
  }

  bool split_last(int64_t rows) {
    const std::string loop = batch_.back();
    if (!draft_.attempt(schedule::Split{loop, rows})) return false;
    batch_.back() = loop + ".o";
    batch_.push_back(loop + ".i");
    return true;
  }

  /// The loop that is cut at borders cannot be joined with those around it: where these alone do
  /// not feed the threads, or threads are to share its rows, its strips do.
  void split_for_threads(const BlockFacts& block) {
    if (batch_.empty() || threads_ < 2) return;
    const int64_t around = iterations_around(block);
    if (!rows_first_ && (around % threads_ == 0 || around >= 8 * threads_)) return;
    const int64_t extent = extent_of_loop(block, batch_.back());
    const int64_t others = rows_first_ ? 1 : around;
    for (int64_t strips = threads_; strips <= extent / 2; ++strips)
      if (extent % strips == 0 && (others * strips) % threads_ == 0) {
        if (split_last(extent / strips) && rows_first_) row_strips_ = batch_[batch_.size() - 2];
        return;
      }
  }

  /// Joins tiles of rows to blocks that pass all columns.
  void split_row_block() {
    const int64_t tiles = ceil_div(tile_.row.extent, tile_.row.tile);
    const int64_t block = ceil_div(tile_.block, tile_.row.tile);
    if (row_outer_.empty() || block >= tiles || !draft_.attempt(schedule::Split{row_outer_, block}))
      return;
    row_block_ = row_outer_ + ".o";
    const bool ragged = std::erase(ragged_, row_outer_) > 0;
    row_outer_ += ".i";
    if (!ragged && tiles % block == 0) return;
    whole_blocks_ = (tiles - 1) / block;
    whole_tiles_ = (tiles - 1) % block + (ragged ? 0 : 1);
  }

  /// Stands the last block of rows alone where it has fewer tiles or ends in a partial one, which
  /// then stands alone in it.
  void cut_last_block() {
    for (const std::string& part : draft_.parts_of(row_block_)) {
      if (!draft_.attempt(schedule::Cut{part, {whole_blocks_, 1}})) continue;
      if (tile_.row.exact() || whole_tiles_ == 0) continue;
      const std::string last = part.substr(row_block_.size()) + "@1";
      if (!cut_outside(draft_, name_ + last, row_outer_ + last, threads_))
        draft_.attempt(schedule::Cut{row_outer_ + last, {whole_tiles_, 1}});
    }
  }

  /// Takes rows of the innermost loop around the tile into the tile.
  void split_plane(const BlockFacts& block) {
    const std::string& plane = tile_.plane.loop;
    if (plane.empty() || batch_.size() < 2) return;
    const std::string loop = batch_.back();
    if (loop != plane && loop != plane + ".i") return;
    int64_t extent = extent_of_loop(block, plane);
    if (loop != plane) extent = rows_per_strip_;
    if (extent <= tile_.plane.tile) {
      inner_.push_back(loop);
      batch_.pop_back();
    } else if (draft_.attempt(schedule::Split{loop, tile_.plane.tile})) {
      inner_.push_back(loop + ".i");
      batch_.back() += ".o";
      if (extent % tile_.plane.tile != 0) ragged_.push_back(batch_.back());
    }
  }

  void split_row_and_column() {
    auto split = [&](const TiledLoop& t, std::string& outer) {
      if (t.loop.empty()) return;
      if (t.tile == t.extent) {
        inner_.push_back(t.loop);
      } else if (t.tile == 1) {
        outer = t.loop;
      } else if (draft_.attempt(schedule::Split{t.loop, t.tile})) {
        outer = t.loop + ".o";
        inner_.push_back(t.loop + ".i");
        if (!t.exact()) ragged_.push_back(outer);
      } else {
        outer = t.loop;
      }
    };
    split(tile_.row, row_outer_);
    split(tile_.column, column_outer_);
  }

  /// Splits the lanes off; the loop to vectorise becomes the last of `inner_`.
  void split_vector() {
    std::string loop = tile_.vec.loop;
    if (tile_.vec.tile < tile_.vec.extent &&
        draft_.attempt(schedule::Split{loop, tile_.vec.tile})) {
      vec_outer_ = loop + ".o";
      if (!tile_.vec.exact()) ragged_.push_back(vec_outer_);
      loop += ".i";
    }
    if (tile_.vectors > 1 &&
        draft_.attempt(schedule::Split{loop, tile_.vec.tile / tile_.vectors})) {
      inner_.push_back(loop + ".o");
      loop += ".i";
    }
    inner_.push_back(loop);
  }

  /// Puts a loop of one iteration around a tile that is all there is.
  void enclose() {
    const LoopNest nest = draft_.nest_of(name_);
    const std::string loop = inner_.front();
    for (size_t i = 0; i < nest.names.size(); ++i)
      if (nest.names[i] == loop && draft_.attempt(schedule::Split{loop, nest.extents[i]})) {
        row_outer_ = loop + ".o";
        inner_.front() = loop + ".i";
      }
  }

  /// Weights of a column stay in cache while the rows pass: columns outside, rows inside; or the
  /// other way round. A strip is padded once for all columns.
  std::vector<std::string> outer_loops() const {
    size_t leading = std::min<size_t>(batch_.size(), 1);
    if (const std::string& last = strip_.empty() ? block_ : strip_; !last.empty())
      leading =
          static_cast<size_t>(std::find(batch_.begin(), batch_.end(), last) - batch_.begin()) + 1;
    const bool rows_outside = tile_.rows_outside && strip_.empty();
    if (rows_outside) leading = batch_.size();
    const auto rest = batch_.begin() + static_cast<long>(leading);
    std::vector<std::string> outer(batch_.begin(), rest);
    if (!row_block_.empty()) outer.push_back(row_block_);
    if (rows_outside && !row_outer_.empty()) outer.push_back(row_outer_);
    for (const std::string& loop : {column_outer_, vec_outer_})
      if (!loop.empty()) outer.push_back(loop);
    outer.insert(outer.end(), rest, batch_.end());
    // Pools and depthwise windows share out rows, as products do: each thread finds its own
    // results.
    if (rows_first_ && rest != batch_.end() && strip_.empty()) {
      const auto rows = row_strips_.empty() ? outer.end() - 1
                                            : std::find(outer.begin(), outer.end(), row_strips_);
      std::rotate(outer.begin() + static_cast<long>(leading), rows, rows + 1);
    }
    if (!rows_outside && !row_outer_.empty()) outer.push_back(row_outer_);
    return outer;
  }

  bool reorder(const std::vector<std::string>& outer) {
    std::vector<std::string> order = outer;
    order.insert(order.end(), reduce_.begin(), reduce_.end());
    order.insert(order.end(), inner_.begin(), inner_.end());
    return order.size() < 2 || draft_.attempt(schedule::Reorder{order});
  }

  /// Vectorises the innermost loop of a block inside the tile by native vectors and unrolls the
  /// rest.
  void tile_registers(const std::string& name, const std::string& anchor) {
    const LoopNest nest = draft_.nest_inside(name, anchor);
    if (nest.names.empty()) return;
    std::string last = nest.names.back();
    LoopNest outer = {{nest.names.begin(), nest.names.end() - 1},
                      {nest.extents.begin(), nest.extents.end() - 1}};
    const int64_t lanes = target_.lanes(bit_width(widest_type(name)));
    if (nest.extents.back() > lanes && draft_.attempt(schedule::Split{last, lanes})) {
      outer.names.insert(outer.names.begin(), last + ".o");
      outer.extents.insert(outer.extents.begin(), ceil_div(nest.extents.back(), lanes));
      last += ".i";
    }
    draft_.attempt(schedule::Vectorize{last});
    write_out(draft_, name, outer);
  }

  /// Schedules a block that reads the finished tile, and the copy that brings its result out of
  /// channel blocks: it turns the tile in registers.
  void finish_tile(const std::string& name, const std::string& anchor) {
    const Draft::Mark before = draft_.mark();  // keeps the facts below alive
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const Buffer result = find_block(blocks, name)->store->buffer;
    const std::vector<const BlockFacts*> next = readers(blocks, result);
    const bool leaves = next.size() == 1 && turns(*next[0]) && !is_output(draft_.func(), result);
    const std::string copy = leaves ? next[0]->name : "";
    const BlockFacts& reader = *find_block(blocks, name);
    bool cuts = turns(reader) && leaves_channels_out(reader);
    if (leaves && draft_.attempt(schedule::ReverseComputeAt{copy, anchor})) {
      draft_.done.insert(copy);
      draft_.attempt(schedule::SetScope{result.name(), "local"});
      turn_registers(copy, anchor);
      cuts = leaves_channels_out(*next[0]);
    }
    turn_registers(name, anchor);
    // Under a condition, rows would be copied element by element: only the last block has one.
    if (cuts && !column_outer_.empty()) ragged_.push_back(column_outer_);
  }

  void turn_registers(const std::string& name, const std::string& anchor) {
    if (!tile_transpose(draft_, name, target_, anchor)) return tile_registers(name, anchor);
    const LoopNest nest = draft_.nest_inside(name, anchor);
    if (nest.names.size() < 2) return;
    write_out(draft_, name,
              {{nest.names.begin(), nest.names.end() - 2},
               {nest.extents.begin(), nest.extents.end() - 2}});
  }

  DType widest_type(const std::string& name) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name);
    if (block == nullptr || block->store == nullptr) return DType::F32;
    DType dtype = block->store->buffer.dtype();
    for (const Load& load : block->loads)
      if (bit_width(load.buffer.dtype()) > bit_width(dtype)) dtype = load.buffer.dtype();
    return dtype;
  }

  /// Small windows (3x3 and less, few input channels) are unrolled so that their loads are shared.
  void unroll_window(int64_t limit) {
    int64_t unrolled = 1;
    for (size_t i = reduce_.size(); i-- > 0;) {
      unrolled *= std::max<int64_t>(reduce_extents_[i], 1);
      if (unrolled > limit || sliding_.contains(reduce_[i])) return;
      draft_.attempt(schedule::Unroll{reduce_[i]});
    }
  }

  /// Steps of the reduction to write out: 1 unless sums, vectors of a step and the value that is
  /// the same for all lanes leave a register.
  int64_t steps_to_write_out() const {
    const int64_t columns = tile_.column.tile * tile_.vectors;
    const int64_t used = tile_.row.tile * tile_.plane.tile * columns + columns + 1;
    if (reduce_.empty() || target_.vector_registers > kFewRegisters ||
        used >= target_.vector_registers)
      return 1;
    if (reduce_extents_.back() <= kWholeLoop) return kWholeLoop;
    return columns > 1 ? kPartOfLoop : 1;
  }

  /// Writes up to `limit` steps of the reduction out, parts of a loop of at least `least` included.
  /// Iterations of the last loop that became one.
  int64_t unroll_steps(int64_t limit, int64_t least = 2) {
    for (size_t i = reduce_.size(); i-- > 0 && limit > 1 && !sliding_.contains(reduce_[i]);) {
      const int64_t extent = std::max<int64_t>(reduce_extents_[i], 1);
      int64_t steps = std::min(limit, extent);
      while (extent % steps != 0) --steps;
      if (steps == extent) {
        draft_.attempt(schedule::Unroll{reduce_[i]});
        limit /= steps;
        continue;
      }
      if (steps < least || !draft_.attempt(schedule::Split{reduce_[i], steps})) return 1;
      draft_.attempt(schedule::Unroll{reduce_[i] + ".i"});
      reduce_[i] += ".o";
      return i + 1 == reduce_.size() ? steps : 1;
    }
    return 1;
  }

  /// While tiles read their column's weights again, those of the next column come to L2, where they
  /// have room beside them.
  void fetch_next_weights(int64_t bytes) {
    for (const std::string& loop : reduce_) {
      if (bytes == 0 || 3 * bytes > target_.l2_bytes) return;
      if (draft_.attempt(schedule::SetMark{loop, "fetch_next", std::to_string(bytes)})) return;
    }
  }

  /// Cuts partial tiles off, and the tiles at the border if the block tests for it; tiles along the
  /// row not if they are cut for their taps.
  void cut(bool bordered, bool skipped) {
    const auto columns = std::find(ragged_.begin(), ragged_.end(), vec_outer_);
    if (!bordered && !skipped && columns != ragged_.end() &&
        cut_outside(draft_, name_, vec_outer_, threads_))
      ragged_.erase(columns);
    if (whole_blocks_ > 0) cut_last_block();
    if (bordered && !batch_.empty()) cut_borders(draft_, name_, batch_.back(), false);
    for (const std::string& loop : ragged_)
      if (loop != row_outer_ || !(bordered || (skipped && row_block_.empty())))
        cut_borders(draft_, name_, loop, true);
    if (bordered && !row_outer_.empty()) {
      const bool partial = std::find(ragged_.begin(), ragged_.end(), row_outer_) != ragged_.end();
      cut_borders(draft_, name_, row_outer_, partial);
    }
  }

  Draft& draft_;
  std::string name_;
  RegisterTile tile_;
  const hw::CpuTarget& target_;
  int threads_;
  std::vector<std::string> reduce_, batch_;  ///< reduction loops; loops around the tile
  std::vector<int64_t> reduce_extents_;
  std::set<std::string> sliding_;   ///< reduction loops along which a shared operand overlaps
  std::vector<std::string> inner_;  ///< loops of the tile, lanes last
  std::string row_outer_, column_outer_, vec_outer_, strip_, block_, row_block_;
  std::string row_strips_;  ///< loop over the rows that one thread takes
  int64_t rows_per_strip_ = 0;
  bool rows_first_ = false;
  /// Before the last block of rows, and in it before a partial tile; 0 blocks: all are alike.
  int64_t whole_blocks_ = 0, whole_tiles_ = 0;
  std::vector<std::string> ragged_;  ///< loops whose last iteration is a partial tile
};

}  // namespace

bool tile_reduction(Draft& draft, const std::string& name, const RegisterTile& tile,
                    const hw::CpuTarget& target, int threads) {
  return TileRule(draft, name, tile, target, threads).run();
}

bool tile_by_model(Draft& draft, const std::string& name, const hw::CpuTarget& target,
                   TileRows rows) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr) return false;
  const auto tile = choose_register_tile(*block, target, 1, MathMode::Fast, rows);
  if (!tile || !tile_reduction(draft, name, *tile, target, 1)) return false;
  draft.done.insert({name, init_of(name)});
  for (const std::string& piece : draft.pieces_of(name)) draft.done.insert(piece);
  return true;
}

}  // namespace tilewright::rules
