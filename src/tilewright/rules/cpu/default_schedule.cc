// The schedule of a kernel for a CPU, chosen without measuring.
//
//   conv, bias, relu  =>  bias and relu inlined into one block that reads the sum; the sum gets a
//                         register tile; that block is computed in the tile
//
// Rules for whole kernels are asked first (rules/cpu/kernel_rules.cc). Else: cheap element-wise
// blocks are inlined into their readers, a sum that writes an output accumulates in a copy, rules
// for several blocks are asked, then those for each sum that is left; other blocks are vectorised
// along their last axis and made parallel. worth_strips answers fusion, whether a group is better
// one kernel.
#include "tilewright/rules/cpu/default_schedule.h"

#include <fmt/format.h>

#include <set>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/cpu/attention.h"
#include "tilewright/rules/cpu/borders.h"
#include "tilewright/rules/cpu/common_steps.h"
#include "tilewright/rules/cpu/kernel_rules.h"
#include "tilewright/rules/cpu/register_tile.h"
#include "tilewright/rules/cpu/scan.h"
#include "tilewright/rules/cpu/stages.h"
#include "tilewright/rules/cpu/strips.h"
#include "tilewright/rules/cpu/tile_padding.h"
#include "tilewright/rules/cpu/transpose.h"
#include "tilewright/rules/cpu/winograd.h"

namespace tilewright::rules {
namespace {

/// Registers that gathered loads fill at a time.
constexpr int64_t kGathers = 4;
/// A producer is recomputed at its uses rather than stored up to this cost and this many uses each.
constexpr int kCheapCost = 6;
constexpr int64_t kRecomputeLimit = 2;

/// One kernel for several convolutions must be faster by this factor: predictions are not exact.
constexpr double kStripMargin = 1.05;
/// Tiles that are tried for a sum until the steps of one apply.
constexpr size_t kMostTiles = 64;

bool reads(const BlockFacts& block, const Buffer& buffer) {
  return std::any_of(block.loads.begin(), block.loads.end(),
                     [&](const Load& load) { return load.buffer == buffer; });
}

bool reads_sum(const std::vector<BlockFacts>& blocks, const BlockFacts& block) {
  return std::any_of(block.loads.begin(), block.loads.end(), [&](const Load& load) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const BlockFacts& b) {
      return b.kind == BlockFacts::Kind::Reduce && b.store->buffer == load.buffer;
    });
  });
}

/// Whether `producer` brings channels into blocks for a window of them, or finishes sums that
/// `reader` brings out of blocks: both copies turn tiles and compute nothing.
bool stays_beside_copy(const std::vector<BlockFacts>& blocks, const BlockFacts& producer,
                       const BlockFacts& reader) {
  if (turns(reader)) return reads_sum(blocks, producer);
  return turns(producer) && reader.kind == BlockFacts::Kind::Reduce &&
         reader.work() > producer.work();
}

/// Whether `reader` pads, for another reduction, what `producer` finishes or turns: each value
/// would be made anew for every tap that reads it.
bool feeds_window(const std::vector<BlockFacts>& blocks, const BlockFacts& producer,
                  const BlockFacts& reader) {
  if (reader.store->value.as<Select>() == nullptr) return false;
  if (!reads_sum(blocks, producer) && !turns(producer)) return false;
  const std::vector<const BlockFacts*> next = readers(blocks, reader.store->buffer);
  return std::any_of(next.begin(), next.end(),
                     [](const BlockFacts* b) { return b->kind == BlockFacts::Kind::Reduce; });
}

/// Whether `producer` finishes a product that several blocks read: once, in the product's tile.
bool serves_many(const std::vector<BlockFacts>& blocks, const BlockFacts& producer) {
  if (readers(blocks, producer.store->buffer).size() < 2) return false;
  return std::any_of(producer.loads.begin(), producer.loads.end(), [&](const Load& load) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const BlockFacts& b) {
      return product_of(b) && b.store->buffer == load.buffer;
    });
  });
}

class CpuScheduler {
 public:
  /// `point`: what to do with the contraction with most work, instead of the model's choice.
  CpuScheduler(Func func, const hw::CpuTarget& target, int threads,
               std::optional<cost::TilePoint> point = std::nullopt, const Grain& grain = {})
      : draft_(std::move(func)), target_(target), threads_(threads), point_(point), grain_(grain) {}

  CpuScheduler(Draft draft, const hw::CpuTarget& target, int threads)
      : draft_(std::move(draft)), target_(target), threads_(threads) {}

  /// The program that the rules for reductions see.
  Func prepared() {
    inline_injective();
    stage_outputs();
    return draft_.func();
  }

  /// `asked`: rules for whole kernels that have declined.
  ScheduleChoice run(RuleChoice asked = {}) {
    log_.kernel = std::move(asked);
    Draft whole = scheduled();
    return {whole.take(), std::move(decision_), log_.report()};
  }

  Draft scheduled() {
    inline_injective();
    stage_outputs();
    main_ = main_contraction();
    CpuDraft kernel{draft_, target_, threads_};
    ask_joined(kernel, log_.kernel);
    if (stage_operands()) main_ = main_contraction();
    return finish();
  }

  /// Schedules every block that is not done.
  Draft finish() {
    for (const std::string& block : open_blocks(BlockFacts::Kind::Reduce)) reduction(block);
    for (const std::string& block : open_blocks(BlockFacts::Kind::Injective)) injective(block);
    for (const std::string& block : open_blocks(BlockFacts::Kind::Init)) injective(block);
    schedule_scans(draft_, target_, threads_);
    if (!log_.decided()) leave_kernel(log_.kernel);
    return std::move(draft_);
  }

  /// Whether `run` could not do what its point says.
  bool refused() const { return refused_; }

  /// The contraction with most work as the model sees it.
  std::optional<TiledBlock> main_block() {
    inline_injective();
    stage_outputs();
    stage_operands();
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, main_contraction());
    if (block == nullptr) return std::nullopt;
    const Answer<TiledBlock> tiled = tiled_block(*block, blocks, target_, draft_.func().math);
    return tiled ? std::optional(*tiled) : std::nullopt;
  }

 private:
  std::vector<std::string> open_blocks(BlockFacts::Kind kind) const {
    std::vector<std::string> names;
    for (const BlockFacts& block : draft_.blocks())
      if (block.kind == kind && !draft_.done.contains(block.name)) names.push_back(block.name);
    return names;
  }

  /// Recomputing is worth it where the value is cheap or read about once per element.
  bool worth_inlining(const std::vector<BlockFacts>& blocks, const BlockFacts& producer) const {
    if (serves_many(blocks, producer)) return false;
    int64_t uses = 0;
    bool windows = true;
    for (const BlockFacts* reader : readers(blocks, producer.store->buffer)) {
      if (reader->kind == BlockFacts::Kind::Other) return false;
      if (feeds_window(blocks, producer, *reader)) return false;
      if (stays_beside_copy(blocks, producer, *reader)) return false;
      if (reads_through_padding(*reader, producer)) continue;
      windows = false;
      for (const Load& load : reader->loads)
        uses += load.buffer == producer.store->buffer ? reader->work() : 0;
      const bool staged = reader->kind == BlockFacts::Kind::Reduce && producer.cost > 0;
      if (staged && reader->work() > kRecomputeLimit * producer.work()) return false;
    }
    return windows || producer.cost <= kCheapCost || uses <= producer.work();
  }

  void inline_injective() {
    std::set<std::string> refused;
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<BlockFacts> blocks = draft_.blocks();
      for (const BlockFacts& block : blocks) {
        if (block.kind != BlockFacts::Kind::Injective || refused.contains(block.name)) continue;
        if (is_output(draft_.func(), block.store->buffer) || !worth_inlining(blocks, block))
          continue;
        const std::string name = block.name;
        changed = draft_.attempt(schedule::Inline{name});
        if (!changed) refused.insert(name);
        if (changed) break;
      }
    }
  }

  /// A reduction that writes an output directly gets a copy to accumulate in.
  void stage_outputs() {
    std::vector<std::string> names;
    for (const BlockFacts& block : draft_.blocks())
      if (block.kind == BlockFacts::Kind::Reduce && is_output(draft_.func(), block.store->buffer))
        names.push_back(block.name);
    for (const std::string& name : names)
      draft_.attempt(schedule::CacheWrite{name, name + ".acc", ""});
  }

  /// Operands that no vector holds as they lie are copied, where that is worth it.
  bool stage_operands() {
    bool staged = false;
    for (const std::string& block : open_blocks(BlockFacts::Kind::Reduce))
      staged |= stage_lanes(draft_, block, target_);
    return staged;
  }

  void injective(const std::string& name) {
    const LoopNest nest = draft_.nest_of(name);
    if (nest.names.empty()) return;
    int64_t work = cost_of(name);
    for (int64_t extent : nest.extents) work *= extent;
    const bool turned = tile_transpose(draft_, name, target_);
    const std::string period = turned ? "" : split_period(draft_, name);
    if (!turned) vectorize_innermost(draft_, name, target_, registers_of(name));
    if (threads_ > 1) rows_outside(draft_, name);
    parallelize(name, work, grain_.pieces);
    if (!period.empty()) cut_borders(draft_, name, period + ".o", true);
    cut_padding(draft_, name);
  }

  /// Loads at places that are loaded themselves take long: several of them at a time.
  int64_t registers_of(const std::string& name) const {
    if (grain_.vectors > 0) return grain_.vectors;
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name);
    bool gathers = false;
    for (const Load& l : block->loads)
      for (const Expr& index : l.indices)
        walk(index, [&](const Expr& e) { gathers |= e.as<Load>() != nullptr; });
    return gathers ? kGathers : 1;
  }

  int64_t cost_of(const std::string& name) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name);
    return block == nullptr ? 1 : 1 + block->cost;
  }

  void reduction(const std::string& name) {
    if (draft_.done.contains(name)) return;
    const Draft::Mark before = draft_.mark();  // keeps the facts below alive
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name);
    if (block == nullptr) return;
    const int64_t work = block->work();
    RuleChoice choice;
    choice.block = name;
    if (work == 0) {
      leave_sum(fmt::format("the extents of `{}` are not constant, or 0", name), choice);
      return log_.add_sum(std::move(choice), work);
    }
    std::vector<cost::RankedPoint> ranked;
    CpuSum sum{draft_, target_, threads_, name, choose_tile(*block, ranked)};
    if (sum.tile && ranked.size() > 1) {
      const TiledBlock tiled = *tiled_block(*block, blocks, target_, draft_.func().math);
      for (size_t i = 1; i < std::min(ranked.size(), kMostTiles); ++i)
        sum.others.push_back(tiled.at(ranked[i].point));
    }
    const SumNest nest = ask_sum(sum, choice);
    if (name == main_ && sum.taken > 0) {
      decision_.runner_up = std::move(decision_.chosen);
      decision_.runner_up.tile += ", whose steps do not apply";
      decision_.chosen = as_choice(ranked[sum.taken], decision_.runner_up.algorithm);
    }
    log_.add_sum(std::move(choice), work);
    if (nest == SumNest::AsItStands && name == main_) tile_refused();
    // The block that finishes rows is left to the rule for element-wise blocks.
    if (nest != SumNest::Own) return;
    draft_.done.insert(name);
    draft_.done.insert(name + ".init");
    for (const std::string& piece : draft_.pieces_of(name)) {
      draft_.done.insert(piece);
      parallelize(piece, work, sum.tile && sum.tile->pieces > 0 ? sum.tile->pieces : grain_.pieces);
    }
  }

  /// The loops are not in a form to which the steps of a tile apply.
  void tile_refused() {
    refused_ |= point_.has_value();
    if (decision_.chosen.algorithm.empty()) return;
    decision_.runner_up = std::move(decision_.chosen);
    decision_.chosen = {"loops", "as they stand: a step of the tile below does not apply", {}};
  }

  std::string main_contraction() const {
    std::string name;
    int64_t most = 0;
    for (const BlockFacts& block : draft_.blocks())
      if (block.kind == BlockFacts::Kind::Reduce && block.work() > most &&
          tiled_block(block, target_, draft_.func().math))
        most = block.work(), name = block.name;
    return name;
  }

  static cost::Choice as_choice(const cost::RankedPoint& p, const std::string& algorithm) {
    return {algorithm, cost::describe(p.point), p.time};
  }

  /// The tile of the fastest point by the model; `ranked`: all of them, fastest first, where the
  /// caller does not say which one.
  Answer<RegisterTile> choose_tile(const BlockFacts& block,
                                   std::vector<cost::RankedPoint>& ranked) {
    const Answer<TiledBlock> tiled =
        tiled_block(block, draft_.blocks(), target_, draft_.func().math);
    if (!tiled) return decline("{}", tiled.error());
    const bool is_main = block.name == main_;
    if (is_main && point_) return tiled->at(*point_);
    ranked = cost::rank_points(tiled->contraction, target_, threads_);
    if (is_main) {
      const char* algorithm = tiled->contraction.reuse ? "direct" : "window";
      decision_.chosen = as_choice(ranked[0], algorithm);
      if (ranked.size() > 1) decision_.runner_up = as_choice(ranked[1], algorithm);
      decision_.candidates = static_cast<int64_t>(ranked.size());
    }
    return tiled->at(ranked[0].point);
  }

  /// `pieces` per thread at least, where the loops give so many; 0: the usual number.
  void parallelize(const std::string& block, int64_t work, int64_t pieces = 0) {
    if (threads_ < 2 || work < kParallelWork) return;
    const int64_t enough = (pieces > 0 ? pieces : cost::kPiecesPerThread) * threads_;
    for (;;) {
      const LoopNest nest = draft_.nest_of(block);
      if (nest.names.empty()) return;
      size_t i = 0;  // loops of one iteration do not count
      while (i + 1 < nest.names.size() && nest.extents[i] == 1) ++i;
      const Draft::Mark before = draft_.mark();
      if (nest.names.size() > i + 1 && nest.extents[i] < enough &&
          draft_.attempt(schedule::Fuse{nest.names[i], nest.names[i + 1]})) {
        // Keep the fused loop only if it can run in parallel: the inner one may be a reduction.
        const std::string fused = draft_.nest_of(block).names[i];
        if (schedule::apply(schedule::Parallel{fused}, draft_.func())) continue;
        draft_.revert(before);
      }
      if (nest.extents[i] > 1 && draft_.attempt(schedule::Parallel{nest.names[i]})) return;
      return share_piece(draft_, block);
    }
  }

  Draft draft_;
  const hw::CpuTarget& target_;
  int threads_;
  std::optional<cost::TilePoint> point_;
  Grain grain_;
  std::string main_;  ///< the contraction that `point_` and `decision_` are about
  cost::RuleDecision decision_;
  RuleLog log_;
  bool refused_ = false;  ///< some step of `point_` did not apply
};

/// Arithmetic of all blocks that make what `block` reads, and of those before them; finding a place
/// to read is none.
int cost_before(const std::vector<BlockFacts>& blocks, const BlockFacts& block) {
  int cost = 0;
  for (const BlockFacts& maker : blocks)
    if (maker.kind == BlockFacts::Kind::Injective && reads(block, maker.store->buffer))
      cost +=
          (maker.store->value.as<Load>() == nullptr ? maker.cost : 0) + cost_before(blocks, maker);
  return cost;
}

/// Whether something is computed for the operand of `sum`, besides padding and copies.
bool computes_operand(const std::vector<BlockFacts>& blocks, const BlockFacts& sum) {
  return std::any_of(blocks.begin(), blocks.end(), [&](const BlockFacts& maker) {
    if (maker.kind != BlockFacts::Kind::Injective || !reads(sum, maker.store->buffer)) return false;
    const bool moves = turns(maker) || maker.store->value.as<Select>() != nullptr;
    return !moves || computes_operand(blocks, maker);
  });
}

/// Whether a worker's part of what `maker` reads is likely where its own kernel left it. Read from
/// farther away strip by strip it comes slower than by a kernel that does nothing else.
/// source: DenseNet-121 on two cores of a Zen 4, 4-5 ns for a line from L3 against 2.
bool reads_nearby(const BlockFacts& maker, const hw::CpuTarget& target, int threads) {
  constexpr int64_t kShare = 8;
  const int64_t bytes = storage_bytes(maker.store->buffer.dtype(), maker.work());
  return kShare * bytes <= target.l2_bytes * std::max(threads, 1);
}

/// Whether the rules put the blocks around the only contraction of `func` into its nest: copies
/// before it, whatever writes the result, and, where something is computed for its operand, that.
bool takes_neighbours(const Func& func, const std::string& sum, const Func& ready,
                      const hw::CpuTarget& target, int threads) {
  const Draft draft = CpuScheduler(func, target, threads).scheduled();
  const auto outermost = [&](const std::string& name) {
    const std::string loop = draft.nest_of(draft.pieces_of(name).at(0)).names.at(0);
    return loop.substr(0, loop.find('@'));
  };
  const std::vector<BlockFacts> before = collect_blocks(func), blocks = collect_blocks(ready);
  const bool computes = computes_operand(before, *find_block(before, sum));
  return std::all_of(blocks.begin(), blocks.end(), [&](const BlockFacts& block) {
    const bool last = is_output(ready, block.store->buffer);
    const bool makes = computes && !last && block.kind == BlockFacts::Kind::Injective;
    // Padding reads its strip in any case.
    if (makes && !has_select(block) && !reads_nearby(block, target, threads)) return false;
    const bool beside = turns(block) || last || makes;
    return !beside || outermost(block.name) == outermost(sum);
  });
}

}  // namespace

bool worth_strips(const Func& func, const hw::CpuTarget& target, int threads) {
  // A transform computes what it reads once per tile that covers it.
  if (winograd_shape(func, target)) {
    const std::vector<BlockFacts> blocks = collect_blocks(func);
    return cost_before(blocks, *find_block(blocks, kWinogradPixels)) <= kCheapCost;
  }
  const Func ready = CpuScheduler(func, target, threads).prepared();
  if (is_attention(ready, target, threads)) return true;
  std::vector<std::string> sums;
  for (const BlockFacts& block : collect_blocks(ready)) {
    if (block.store == nullptr) return false;
    if (block.kind == BlockFacts::Kind::Reduce) sums.push_back(block.name);
  }
  if (sums.size() == 1) return takes_neighbours(func, sums[0], ready, target, threads);
  const Answer<StripPlan> plan = plan_strips(ready, target, threads);
  if (!plan || plan->fused * kStripMargin >= plan->apart) return false;
  Draft draft(ready);
  // Or else they would follow each other unjoined.
  return schedule_strips(draft, target, threads).has_value();
}

ScheduleChoice choose_schedule(const Func& func, const hw::CpuTarget& target, int threads) {
  CpuKernel kernel{func, target, threads};
  RuleChoice choice;
  if (std::optional<WholeSchedule> whole = ask_whole(kernel, choice))
    return {std::move(whole->trace), std::move(whole->decision), {std::move(choice), {}}};
  return CpuScheduler(func, target, threads).run(std::move(choice));
}

schedule::Trace default_trace(const Func& func, const hw::CpuTarget& target, int threads) {
  return choose_schedule(func, target, threads).trace;
}

void finish_schedule(Draft& draft, const hw::CpuTarget& target, int threads) {
  draft = CpuScheduler(std::move(draft), target, threads).finish();
}

std::optional<cost::Contraction> main_contraction(const Func& func, const hw::CpuTarget& target,
                                                  int threads) {
  const std::optional<TiledBlock> block = CpuScheduler(func, target, threads).main_block();
  if (!block) return std::nullopt;
  return block->contraction;
}

std::vector<cost::RankedPoint> schedule_points(const Func& func, const hw::CpuTarget& target,
                                               int threads) {
  const std::optional<cost::Contraction> main = main_contraction(func, target, threads);
  if (!main) return {};
  return cost::rank_points(*main, target, threads);
}

Result<schedule::Trace> trace_at(const Func& func, const cost::TilePoint& point,
                                 const hw::CpuTarget& target, int threads) {
  const std::optional<TiledBlock> block = CpuScheduler(func, target, threads).main_block();
  std::string reason = "no contraction runs along vector lanes";
  if (block) reason = cost::reject(block->contraction, point, target);
  if (reason.empty()) {
    CpuScheduler scheduler(func, target, threads, point);
    ScheduleChoice choice = scheduler.run();
    if (!scheduler.refused()) return std::move(choice.trace);
    reason = "a step that places its tile does not apply";
  }
  return fail(ErrorKind::NotApplicable,
              fmt::format("{} cannot be scheduled as {}", func.name, cost::describe(point)),
              reason);
}

schedule::Trace trace_with(const Func& func, const Grain& grain, const hw::CpuTarget& target,
                           int threads) {
  return CpuScheduler(func, target, threads, std::nullopt, grain).run().trace;
}

}  // namespace tilewright::rules
