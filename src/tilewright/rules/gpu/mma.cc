// The schedule of a product on matrix instructions of a GPU; rules/gpu/mma_tiles.cc chooses sizes.
//
//   C[m, n] += A[m, k] * B[k, n], a block 128x128, a warp 64x32, 32 of k at a time
//   =>
//   m.o, n.o: blocks.  k.o: copies of A and B to shared memory, some iterations ahead
//     m.i.o, n.i.o: warps.  k.i.o: ldmatrix of 16 rows of A and of B into registers of the warp
//       m.i.i.o, n.i.i.o: instructions mma.sync, 16x8 results each, by the step tensorize
//
// The functions of MmaTiler are in the order of its steps. An operand that is in no fit order is
// laid out by a kernel of its own first (pack); sizes that do not divide are padded with zeros in
// the copies; results leave the registers in the layout that the instructions have them in.
#include "tilewright/rules/gpu/mma.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tilewright/arith/fetch.h"
#include "tilewright/arith/tf32.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/text.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {
namespace {

/// Rows and columns of one instruction; rows or columns that one load brings.
constexpr int64_t kMmaRows = 16, kMmaColumns = 8, kLoaded = 16;
/// How lanes hold results: groups of four lanes have a row, a lane two neighbours in it.
constexpr int64_t kLaneRows = 8, kLanePair = 2;
/// Rows and terms of a core, which groups of warps read from shared memory.
constexpr int64_t kCore = 8;
/// Axes of a buffer that a copy engine reads.
constexpr size_t kMostAxes = 5;
/// Threads of a block that lays out a factor.
constexpr int64_t kPackThreads = 256;
/// Padding and rounding up to this cost is computed again wherever a factor is staged.
constexpr int kCheapPadding = 64;

/// Schedules one product; the steps are in the order of the functions.
class MmaTiler {
 public:
  MmaTiler(Draft& draft, std::string name, GpuMma mma)
      : draft_(draft),
        name_(std::move(name)),
        mma_(std::move(mma)),
        m_(mma_.m[0]),
        n_(mma_.n[0]),
        k_(mma_.k[0]) {}

  bool run() {
    return find_loops() && pack(mma_.a, m_) && pack(mma_.b, n_) && stage_factors() &&
           inline_padding() && pad() && choose_copies() && split_loops() && place_results() &&
           place_factors() && load_fragments() && multiply() && share_out_results() &&
           share_out_copies() && bind() && pipeline();
  }

 private:
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }

  std::string intrinsic(const std::string& kind) const {
    const hw::Intrinsic* in = hw::find_gpu_intrinsic("cuda." + kind);
    return in == nullptr ? "" : print(in->meaning);
  }

  /// The name of a copy, of its own in each of several products that share a factor.
  std::string own(const GpuMma::Factor& factor, const std::string& kind) const {
    const size_t part = name_.find('@');
    return factor.buffer + (part == std::string::npos ? "" : name_.substr(part)) + kind;
  }

  /// The loops of the iterations of the product.
  bool find_loops() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name_);
    for (const Iter& iter : block->block->iters) loops_[iter.var.name()] = block->loop_of(iter.var);
    return !loop(m_).empty() && !loop(n_).empty() && !loop(k_).empty();
  }
  const std::string& loop(const std::string& iter) const { return loops_.at(iter); }

  /// Both factors in memory of their own, rows and columns last.
  bool stage_factors() {
    copies_ = {own(mma_.a, ".shared"), own(mma_.b, ".shared")};
    return stage(mma_.a, copies_[0], m_, k_) &&
           stage(mma_.b, copies_[1], mma_.b_by_rows ? n_ : k_, mma_.b_by_rows ? k_ : n_);
  }

  bool stage(const GpuMma::Factor& factor, const std::string& copy, const std::string& row,
             const std::string& column) {
    if (factor.as_is) return attempt(schedule::CacheRead{name_, factor.buffer, copy, ""});
    return lay_out(factor, copy, row, column);
  }

  bool lay_out(const GpuMma::Factor& factor, const std::string& copy, const std::string& row,
               const std::string& column) {
    schedule::Names iters;
    const std::vector<BlockFacts> blocks = draft_.blocks();
    for (const Load& load : find_block(blocks, name_)->loads)
      if (load.buffer.name() == factor.buffer)
        for (const std::string& b : mma_.batch)
          for (const Iter& iter : find_block(blocks, name_)->block->iters)
            if (iter.var.name() == b && mentions(load, iter.var)) iters.push_back(b);
    iters.push_back(row), iters.push_back(column);
    return attempt(schedule::Reindex{name_, factor.buffer, copy, iters});
  }

  /// A kernel of its own lays the factor out by rows and terms, a thread for each element; also
  /// what is known before the first run and would take more than copies otherwise.
  bool pack(GpuMma::Factor& factor, const std::string& row) {
    factor.packed |= (mma_.types == kTf32 || !factor.in_order) && is_known(factor.buffer);
    if (!factor.packed) return true;
    const std::string packed = factor.buffer + ".packed";
    if (!lay_out(factor, packed, row, k_)) return false;
    inline_maker(factor.buffer);
    factor.in_order = true;
    schedule::Names blocks = draft_.nest_of(packed).names;
    if (blocks.empty() || !attempt(schedule::Split{blocks.back(), kPackThreads})) return false;
    factor.buffer = packed, factor.as_is = true;
    const std::string terms = std::exchange(blocks.back(), blocks.back() + ".o");
    return bind_threads(draft_, {terms + ".i"}) && bind_blocks(draft_, blocks);
  }

  /// Whether constants alone decide what is in the buffer.
  bool is_known(const std::string& buffer) const {
    for (const Param& param : draft_.func().params)
      if (param.buffer.name() == buffer) return param.mode == ParamMode::Const;
    bool made = false;
    for (const BlockFacts& block : draft_.blocks()) {
      if (block.store == nullptr || block.store->buffer.name() != buffer) continue;
      made = std::all_of(block.loads.begin(), block.loads.end(), [&](const Load& load) {
        return load.buffer.name() != buffer && is_known(load.buffer.name());
      });
      if (!made) return false;
    }
    return made;
  }

  /// What pads or rounds a factor does so while the factor is staged. False: it is not rounded.
  bool inline_padding() {
    for (const GpuMma::Factor* factor : {&mma_.a, &mma_.b})
      if (!factor->packed) inline_maker(factor->buffer);
    if (mma_.types != kTf32) return true;
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const auto rounded = [&](const GpuMma::Factor& factor, const std::string& copy) {
      const BlockFacts* from = find_block(blocks, factor.packed ? factor.buffer : copy);
      return static_cast<bool>(arith::rounded_to_tf32(from->store->value));
    };
    return rounded(mma_.a, copies_[0]) && rounded(mma_.b, copies_[1]);
  }

  void inline_maker(const std::string& buffer) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    for (const BlockFacts& b : blocks)
      if (b.kind == BlockFacts::Kind::Injective && b.store->buffer.name() == buffer &&
          b.cost <= kCheapPadding && readers(blocks, b.store->buffer).size() == 1) {
        attempt(schedule::Inline{std::string(b.name)});
        return;
      }
  }

  bool pad() {
    return attempt(schedule::Pad{name_, m_, mma_.block_m}) &&
           attempt(schedule::Pad{name_, n_, mma_.block_n}) &&
           attempt(schedule::Pad{name_, k_, mma_.block_k});
  }

  /// Whether both factors are fetched by the copy engine: as they are in memory, but for what lies
  /// outside of it.
  bool choose_copies() {
    mma_.bulk &= mma_.groups && mma_.depth > 1 && is_tiles(mma_.a, copies_[0]) &&
                 is_tiles(mma_.b, copies_[1]);
    return true;
  }

  /// Rows begin on multiples of 16 bytes, and neither they nor what is in them are rearranged.
  bool is_tiles(const GpuMma::Factor& factor, const std::string& copy) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, copy);
    arith::Bounds bounds;
    for (const Iter& iter : block->block->iters) bounds.bind(iter.var, iter.extent);
    const auto fetch = arith::fetch_of(*block->store, {}, bounds);
    const std::vector<Expr>& to = block->store->indices;
    if (!factor.in_order || !fetch || fetch->at.size() < 2 || fetch->at.size() > kMostAxes)
      return false;
    const Buffer& from = fetch->from;
    if (as_int(from.shape().back()).value_or(1) % mma_.per_row() != 0 || !is_dense(from))
      return false;
    const size_t rank = to.size(), last = fetch->at.size() - 1;
    const auto* row = to[rank - 2].as<VarRef>();
    const auto* column = to[rank - 1].as<VarRef>();
    return row != nullptr && column != nullptr &&
           arith::moved_axis(column->var, fetch->at) == last &&
           arith::moved_axis(row->var, fetch->at).value_or(last) != last;
  }

  /// Whether a buffer is no part of a larger one.
  bool is_dense(const Buffer& buffer) const {
    const std::vector<Param>& params = draft_.func().params;
    return std::none_of(params.begin(), params.end(), [&](const Param& param) {
      return param.buffer == buffer && !param.strides.empty();
    });
  }

  /// m.o, m.i.o, m.i.i.o, m.i.i.i: block, warp, instruction, element.
  bool split_side(const std::string& loop, int64_t block, int64_t warp, int64_t element) {
    return attempt(schedule::Split{loop, block}) && attempt(schedule::Split{loop + ".i", warp}) &&
           attempt(schedule::Split{loop + ".i.i", element});
  }

  bool split_loops() {
    const std::string m = loop(m_), n = loop(n_), k = loop(k_);
    if (!split_side(m, mma_.block_m, mma_.warp_m, mma_.groups ? mma_.warp_m : kMmaRows) ||
        !split_side(n, mma_.block_n, mma_.warp_n, mma_.groups ? mma_.warp_n : kMmaColumns) ||
        !attempt(schedule::Split{k, mma_.block_k}) ||
        !attempt(schedule::Split{k + ".i", mma_.terms()}))
      return false;
    for (const std::string& iter : mma_.batch)
      if (!loop(iter).empty()) blocks_.push_back(loop(iter));
    std::string columns = n + ".o";
    if (mma_.turns > 1) {
      if (!attempt(schedule::Split{columns, mma_.turns})) return false;
      tile_ = columns + ".i", columns += ".o";
    }
    if (mma_.raster > 1) {
      if (!attempt(schedule::Split{m + ".o", mma_.raster})) return false;
      blocks_.insert(blocks_.end(), {m + ".o.o", columns, m + ".o.i"});
    } else {
      blocks_.insert(blocks_.end(), {m + ".o", columns});
    }
    round_ = k + ".o", step_ = k + ".i.o";
    schedule::Names order = blocks_;
    if (mma_.turns > 1) order.push_back(tile_);
    if (tile_.empty()) tile_ = blocks_.back();
    for (const std::string& next :
         {round_, m + ".i.o", n + ".i.o", step_, m + ".i.i.o", n + ".i.i.o"})
      order.push_back(next);
    for (const std::string& element : {m + ".i.i.i", n + ".i.i.i", k + ".i.i"}) {
      const bool panels = mma_.bulk && !mma_.b_by_rows && element.starts_with(n + ".i");
      if (!mma_.groups || (mma_.bulk && !panels)) {
        order.push_back(element);
        continue;
      }
      if (!attempt(schedule::Split{element, panels ? panel() : kCore})) return false;
      order.push_back(element + ".o"), order.push_back(element + ".i");
    }
    return attempt(schedule::Reorder{order});
  }

  /// Results are in registers of warps: initial values and readers come into the block's loops.
  bool place_results() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const Buffer result = find_block(blocks, name_)->store->buffer;
    for (const BlockFacts* reader : readers(blocks, result)) readers_.push_back(reader->name);
    if (!attempt(schedule::ComputeAt{name_ + ".init", tile_})) return false;
    for (const std::string& reader : readers_)
      if (!attempt(schedule::ReverseComputeAt{reader, tile_})) return false;
    return attempt(schedule::SetScope{result.name(), "warp"});
  }

  bool place_factors() {
    return std::all_of(copies_.begin(), copies_.end(), [&](const std::string& copy) {
      return attempt(schedule::ComputeAt{copy, round_}) &&
             attempt(schedule::SetScope{copy, "shared"}) &&
             (mma_.groups
                  ? attempt(schedule::Layout{copy, arranged(copy)})
                  : attempt(schedule::SetMark{copy, "pad", std::to_string(mma_.per_row())})) &&
             (mma_.depth < 2 ||
              attempt(schedule::SetMark{copy, "async", mma_.bulk ? hw::kBulk : "1"}));
    });
  }

  /// Elements of a row of a panel.
  int64_t panel() const { return hw::kPanelBytes / mma_.bytes; }
  /// Whether the rows of a copy are terms.
  bool has_terms_as_rows(const std::string& copy) const {
    return copy == copies_[1] && !mma_.b_by_rows;
  }

  /// How groups of warps read a copy: cores `[b, r, c] -> [b, r/8, c/8, r%8, c%8]`; panels
  /// `[b, r, c] -> [b, c/64, r, c%64]`, or `[b, r/64, c/64, r%64, c%64]` where rounds go along r.
  std::string arranged(const std::string& copy) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    std::string axes;
    for (size_t axis = find_block(blocks, copy)->store->indices.size(); axis-- > 2;)
      axes += fmt::format("x{}, ", axis);
    if (!mma_.bulk) return fmt::format("[{0}r, c] -> [{0}r/{1}, c/{1}, r%{1}, c%{1}]", axes, kCore);
    if (!has_terms_as_rows(copy))
      return fmt::format("[{0}r, c] -> [{0}c/{1}, r, c%{1}]", axes, panel());
    return fmt::format("[{0}r, c] -> [{0}r/{1}, c/{2}, r%{1}, c%{2}]", axes, mma_.block_k, panel());
  }

  bool load_fragments() {
    if (mma_.groups) return true;
    return load(copies_[0], own(mma_.a, ".warp"), "load_a_" + mma_.a.type, true) &&
           load(copies_[1], own(mma_.b, ".warp"),
                (mma_.b_by_rows ? "load_bt_" : "load_b_") + mma_.b.type, mma_.b_by_rows);
  }

  /// What a step needs of a factor, by loads of 16 rows or columns and all of its terms.
  bool load(const std::string& from, const std::string& to, const std::string& by,
            bool terms_last) {
    if (!attempt(schedule::CacheRead{name_, from, to, step_}) ||
        !attempt(schedule::SetScope{to, "warp"}))
      return false;
    const std::vector<std::string> nest = draft_.nest_inside(to, step_).names;
    if (nest.size() < 2) return false;
    const std::string row = nest[nest.size() - 2], column = nest.back();
    return attempt(schedule::Split{row, kLoaded}) &&
           attempt(schedule::Split{column, terms_last ? mma_.terms() : kLoaded}) &&
           attempt(schedule::Reorder{{row + ".o", column + ".o", row + ".i", column + ".i"}}) &&
           attempt(schedule::Tensorize{row + ".i", intrinsic(by)}) &&
           attempt(schedule::Unroll{row + ".o"}) && attempt(schedule::Unroll{column + ".o"});
  }

  bool multiply() {
    const std::string m = loop(m_) + ".i.i", n = loop(n_) + ".i.i";
    const std::string by = (mma_.groups ? fmt::format("wgmma{}_", mma_.warp_n) : "mma_") +
                           mma_.types + (mma_.b_by_rows ? "_t" : "") + (mma_.bulk ? "_panels" : "");
    const std::string first = mma_.groups && !mma_.bulk ? ".i.o" : ".i";
    return attempt(schedule::Tensorize{m + first, intrinsic(by)}) &&
           attempt(schedule::Unroll{m + ".o"}) && attempt(schedule::Unroll{n + ".o"}) &&
           attempt(schedule::Unroll{step_});
  }

  /// Initial values and readers are shared out as instructions hold the results.
  bool share_out_results() {
    std::vector<std::pair<std::string, std::string>> loops;  // of rows and columns
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* init = find_block(blocks, name_ + ".init");
    const Buffer result = init->store->buffer;
    const auto add = [&](const BlockFacts& facts, const std::vector<Expr>& indices) {
      const auto* row = indices[indices.size() - 2].as<VarRef>();
      const auto* column = indices.back().as<VarRef>();
      if (row == nullptr || column == nullptr) return false;
      loops.emplace_back(facts.loop_of(row->var), facts.loop_of(column->var));
      return !loops.back().first.empty() && !loops.back().second.empty();
    };
    if (!add(*init, init->store->indices)) return false;
    for (const std::string& reader : readers_) {
      const BlockFacts* facts = find_block(blocks, reader);
      const size_t before = loops.size();
      for (const Load& load : facts->loads)
        if (load.buffer == result && loops.size() == before && !add(*facts, load.indices))
          return false;
      if (loops.size() == before) return false;
    }
    return std::all_of(loops.begin(), loops.end(),
                       [&](const auto& pair) { return share_out(pair.first, pair.second); });
  }

  bool share_out(const std::string& m, const std::string& n) {
    const std::string row = m + ".i.i", pair = n + ".i.i";
    if (!attempt(schedule::Split{m, mma_.warp_m}) ||
        !attempt(schedule::Split{m + ".i", kMmaRows}) ||
        !attempt(schedule::Split{row, kLaneRows}) || !attempt(schedule::Split{n, mma_.warp_n}) ||
        !attempt(schedule::Split{n + ".i", kMmaColumns}) ||
        !attempt(schedule::Split{pair, kLanePair}))
      return false;
    // Of the rows of a group, warps have 16 each; a warp has several instructions' rows instead.
    schedule::Names lanes = {row + ".i", pair + ".o"},
                    inside = {row + ".o", n + ".i.o", pair + ".i"};
    (mma_.groups ? lanes : inside).insert((mma_.groups ? lanes : inside).begin(), m + ".i.o");
    schedule::Names order = {m + ".o", n + ".o"};
    order.insert(order.end(), lanes.begin(), lanes.end());
    order.insert(order.end(), inside.begin(), inside.end());
    if (!attempt(schedule::Reorder{order}) || !attempt(schedule::Bind{order[0], "thread.z"}) ||
        !attempt(schedule::Bind{order[1], "thread.y"}) ||
        !attempt(schedule::Bind{fused(lanes), "thread.x"}))
      return false;
    return std::all_of(inside.begin(), inside.end(),
                       [&](const std::string& loop) { return attempt(schedule::Unroll{loop}); });
  }

  /// The one loop that loops one in the other become; empty where they do not.
  std::string fused(const schedule::Names& loops) {
    std::string all = loops[0];
    for (size_t i = 1; i < loops.size(); ++i) {
      if (!attempt(schedule::Fuse{all, loops[i]})) return {};
      all += "*" + loops[i];
    }
    return all;
  }

  bool share_out_copies() {
    return share_out_copy(mma_.a, copies_[0]) && share_out_copy(mma_.b, copies_[1]);
  }

  /// All threads copy groups of 16 bytes, in as many turns as it takes: neighbours those that lie
  /// side by side in memory, or rows of cores, so that they write to different banks.
  bool share_out_copy(const GpuMma::Factor& factor, const std::string& copy) {
    schedule::Names nest = draft_.nest_inside(copy, round_).names;
    if (mma_.bulk) return share_out_tiles(nest, copy);
    if (nest.size() < 2 || !attempt(schedule::Split{nest.back(), mma_.per_row()})) return false;
    const std::string vector = nest.back() + ".i";
    std::string row = nest[nest.size() - 2], column = nest.back() + ".o";
    nest.resize(nest.size() - 2);
    if (mma_.groups) {
      if (!attempt(schedule::Split{row, kCore})) return false;
      nest.insert(nest.end(), {row + ".o", column, row + ".i"});
      if (!factor.in_order) std::swap(nest[nest.size() - 3], nest[nest.size() - 2]);
    } else {
      nest.insert(nest.end(), {row, column});
      if (!factor.in_order) std::swap(nest[nest.size() - 2], nest.back());
    }
    schedule::Names order = nest;
    order.push_back(vector);
    return attempt(schedule::Reorder{order}) &&
           attempt(schedule::Spread{fused(nest),
                                    {"thread.z", "thread.y", "thread.x"},
                                    {mma_.block_m / mma_.warp_m, mma_.block_n / mma_.warp_n,
                                     mma_.groups ? hw::kGroupLanes : hw::kWarpLanes}}) &&
           attempt(schedule::Vectorize{vector});
  }

  /// The first thread has panels copied as wholes.
  bool share_out_tiles(schedule::Names nest, const std::string& copy) {
    if (nest.size() < 2 || !has_terms_as_rows(copy)) return nest.size() >= 2;
    const std::string column = nest.back();
    if (!attempt(schedule::Split{column, panel()})) return false;
    nest.back() = column + ".i";
    nest.insert(nest.end() - 2, column + ".o");
    return attempt(schedule::Reorder{nest});
  }

  bool bind() {
    return attempt(schedule::Bind{loop(m_) + ".i.o", "thread.z"}) &&
           attempt(schedule::Bind{loop(n_) + ".i.o", "thread.y"}) && bind_blocks(draft_, blocks_);
  }

  /// Copies run ahead of products.
  bool pipeline() {
    return mma_.depth < 2 || attempt(schedule::Pipeline{round_, copies_, mma_.depth});
  }

  Draft& draft_;
  std::string name_;
  GpuMma mma_;
  const std::string m_, n_, k_;               ///< iterations
  std::map<std::string, std::string> loops_;  ///< by iteration
  std::vector<std::string> copies_;
  schedule::Names blocks_, readers_;
  std::string tile_;  ///< the loop around all that is computed of a tile
  std::string round_, step_;
};

}  // namespace

bool apply_gpu_mma(Draft& draft, const std::string& name, const GpuMma& mma) {
  const std::optional<GpuMma> matrices = as_matrices(draft, name, mma);
  return matrices && MmaTiler(draft, name, *matrices).run();
}

}  // namespace tilewright::rules
