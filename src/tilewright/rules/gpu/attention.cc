// softmax(Q K^T) V in one kernel. A block takes up to 64 queries of one head, as many as have room
// for their scores in shared memory and leave a block for every unit. Keys pass in tiles of 128,
// and all scores stay; the softmax goes over them in place, its maxima and sums by lanes of warps;
// then values pass in tiles of 32. Copies run one tile ahead.
#include "tilewright/rules/gpu/attention.h"

#include <algorithm>

#include "tilewright/base/dtype.h"
#include "tilewright/rules/cpu/attention.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/warp_reduce.h"

namespace tilewright::rules {
namespace {

/// Queries of a block, at most and at least; of a thread.
constexpr int64_t kMostQueries = 64, kLeastRows = 4, kThreadRows = 4;
/// Keys that a round stages, for the first product and for the second.
constexpr int64_t kScoreKeys = 128, kValueKeys = 32;
/// Rounds of them in shared memory: copies run ahead.
constexpr int64_t kAttentionDepth = 2;
/// Elements of a result that a thread reads and writes together.
constexpr int64_t kAttentionVector = 4;

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct GpuAttentionPlan : AttentionBlocks {
  int64_t queries = 0, keys = 0, depth = 0, columns = 0;  ///< depth: of the first sum
  int64_t heads = 1;
  WarpRows share;  ///< of a block
};

/// The extent of the only loop that the sum of `block` runs over, or 0.
int64_t terms_of(const BlockFacts& block) {
  int64_t terms = 0;
  for (const Iter& iter : block.block->iters) {
    if (iter.kind != IterKind::Reduce) continue;
    if (terms != 0) return 0;
    terms = block.extent_of(iter.var);
  }
  return terms;
}

int64_t last_extent(const BlockFacts& block) {
  return as_int(block.store->buffer.shape().back()).value_or(0);
}

/// What a block of `rows` queries keeps in shared memory.
int64_t shared_bytes(const GpuAttentionPlan& plan, int64_t rows) {
  const int64_t pad = kAttentionVector;
  return 4 * (rows * plan.keys + rows * (plan.depth + pad) +
              kAttentionDepth * plan.depth * (std::min(kScoreKeys, plan.keys) + pad) +
              kAttentionDepth * kValueKeys * (plan.columns + pad) + 2 * rows * (kRowLanes + 1));
}

/// Its sizes; how rows are shared out is not decided yet.
Answer<GpuAttentionPlan> find_plan(const Func& func) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const Answer<AttentionBlocks> found = find_attention(func, blocks);
  if (!found) return decline("{}", found.error());
  GpuAttentionPlan plan{*found, 0, 0, 0, 0, 1, {}};
  const BlockFacts *scores = find_block(blocks, plan.scores),
                   *result = find_block(blocks, plan.result);
  plan.queries = row_extent(*result), plan.keys = last_extent(*scores);
  plan.depth = terms_of(*scores), plan.columns = last_extent(*result);
  if (scores->store->buffer.dtype() != DType::F32)
    return decline("the scores are {}, not f32", name(scores->store->buffer.dtype()));
  if (plan.depth <= 0 || plan.columns <= 0 || plan.keys != terms_of(*result))
    return decline("the products do not sum over one axis each, the second one over the keys");
  if (func.math != MathMode::Fast) return decline("math is exact: sums keep their order");
  if (plan.queries < kLeastRows || plan.keys < kRowLanes)
    return decline("{} queries and {} keys are fewer than {} and {}", plan.queries, plan.keys,
                   kLeastRows, kRowLanes);
  plan.heads = 1;
  for (const Expr& extent : result->store->buffer.shape()) plan.heads *= as_int(extent).value_or(0);
  plan.heads /= plan.queries * plan.columns;
  return plan;
}

bool fits(const GpuAttentionPlan& plan, int64_t rows, const hw::GpuTarget& target) {
  return rows <= plan.queries && shared_bytes(plan, rows) <= target.shared_bytes;
}

Answer<GpuAttentionPlan> plan_attention(const Func& func, const hw::GpuTarget& target) {
  Answer<GpuAttentionPlan> found = find_plan(func);
  if (!found) return found;
  GpuAttentionPlan& plan = *found;
  // As many queries as fit, for the keys and values are read once per block; but no fewer blocks
  // than there are units.
  for (int64_t rows = kMostQueries; rows >= kLeastRows; rows /= 2) {
    if (!fits(plan, rows, target)) continue;
    plan.share.rows = rows;
    if (plan.heads * ceil_of(plan.queries, rows) >= target.units) break;
  }
  plan.share.warps =
      std::clamp<int64_t>(plan.share.rows / kThreadRows, 1, target.max_threads / kRowLanes);
  if (plan.share.rows < kLeastRows)
    return decline("the scores of {} queries for {} keys do not fit {} bytes of shared memory",
                   kLeastRows, plan.keys, target.shared_bytes);
  return found;
}

class AttentionScheduler {
 public:
  AttentionScheduler(Draft& draft, GpuAttentionPlan plan, const hw::GpuTarget& target)
      : draft_(draft), plan_(std::move(plan)), target_(target) {}

  bool run() {
    return write_back() && split_rows() && place_rows() && tile_result() && tile_scores() &&
           share_out_rows() && share_memory() && bind_blocks(draft_, blocks_);
  }

 private:
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }

  bool is_sum(const std::string& name) const {
    return std::find(plan_.sums.begin(), plan_.sums.end(), name) != plan_.sums.end();
  }

  /// Results that something else than element-wise code reads have a copy in registers.
  bool write_back() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    for (const BlockFacts* reader :
         readers(blocks, find_block(blocks, plan_.result)->store->buffer))
      if (reader->kind != BlockFacts::Kind::Injective && reader->name != plan_.result)
        return attempt(schedule::CacheWrite{plan_.result, plan_.result + ".acc", ""});
    return true;
  }

  /// Blocks take the loops around some queries.
  bool split_rows() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    in_parts_ = std::any_of(plan_.between.begin(), plan_.between.end(), [&](const auto& name) {
      return !stays(blocks, find_block(blocks, name)->store->buffer);
    });
    const BlockFacts& first = *find_block(blocks, in_parts_ ? plan_.scores : plan_.result);
    const auto& indices = first.store->indices;
    schedule::Names loops;
    for (const Expr& index : indices) {
      const auto* iter = index.as<VarRef>();
      if (iter == nullptr) return false;
      loops.push_back(first.loop_of(iter->var));
    }
    loops.pop_back();
    std::erase(loops, "");
    if (loops.empty() || !attempt(schedule::Split{loops.back(), plan_.share.rows})) return false;
    plan_.share.loop = loops.back() += ".o";
    blocks_ = loops;
    return loops.size() < 2 || attempt(schedule::Reorder{loops});
  }

  /// Everything up to the second product is computed for the queries of a block.
  bool place_rows() {
    finisher_ = finisher_of(draft_.blocks(), plan_.scores);
    if (finisher_.empty()) {
      if (!attempt(schedule::CacheWrite{plan_.scores, plan_.scores + ".tile", ""})) return false;
      finisher_ = plan_.scores + ".wb";
      plan_.between.insert(plan_.between.begin(), finisher_);
    }
    if (!(in_parts_ ? gather_behind() : gather_before())) return false;
    for (const std::string& name : plan_.between) {
      if (is_sum(name)) continue;
      const std::vector<BlockFacts> blocks = draft_.blocks();
      const Buffer made = find_block(blocks, name)->store->buffer;
      if (stays(blocks, made) && !attempt(schedule::SetScope{made.name(), "shared"})) return false;
    }
    return in_parts_ || attempt(schedule::ComputeAt{plan_.scores, plan_.share.loop});
  }

  bool gather_before() {
    for (size_t i = plan_.between.size(); i-- > 0;)
      if (!attempt(schedule::ComputeAt{plan_.between[i], plan_.share.loop})) return false;
    return true;
  }

  /// What others read as well cannot move to the result: everything follows the scores, initial
  /// values first.
  bool gather_behind() {
    schedule::Names order = {plan_.scores + ".init"};
    for (const std::string& sum : plan_.sums) order.push_back(sum + ".init");
    order.insert(order.end(), {plan_.result + ".init", plan_.scores});
    order.insert(order.end(), plan_.between.begin(), plan_.between.end());
    order.push_back(plan_.result);
    if (!attempt(schedule::Order{order})) return false;
    schedule::Names moved = plan_.between;
    moved.push_back(plan_.result);
    return std::all_of(moved.begin(), moved.end(), [&](const std::string& name) {
      return attempt(schedule::ReverseComputeAt{name, plan_.share.loop}) &&
             (!is_sum(name) || attempt(schedule::ComputeAt{name + ".init", plan_.share.loop}));
    });
  }

  /// Whether nothing after the second product reads `buffer`.
  bool stays(const std::vector<BlockFacts>& blocks, const Buffer& buffer) const {
    const auto found = readers(blocks, buffer);
    return std::all_of(found.begin(), found.end(), [&](const BlockFacts* reader) {
      return reader->name == plan_.result || std::find(plan_.between.begin(), plan_.between.end(),
                                                       reader->name) != plan_.between.end();
    });
  }

  /// What becomes of the scores is written over them.
  bool share_memory() {
    std::string scores;
    for (const std::string& name : plan_.between) {
      const std::vector<BlockFacts> blocks = draft_.blocks();
      const BlockFacts* block = find_block(blocks, name);
      if (is_sum(name) || last_extent(*block) != plan_.keys) continue;
      if (scores.empty())
        scores = block->store->buffer.name();
      else if (!attempt(schedule::Inplace{name, scores}))
        return false;
    }
    return true;
  }

  /// Along `extent`, groups of a thread's elements side by side.
  static GpuAxis axis_of(std::string loop, int64_t extent, int64_t most) {
    GpuAxis axis{std::move(loop), extent, kRowLanes, 1, 1};
    axis.each = ceil_of(std::min(extent, most), kRowLanes);
    for (axis.vector = std::min(kAttentionVector, axis.each); axis.each % axis.vector != 0;)
      --axis.vector;
    return axis;
  }

  bool tile_result() { return tile(plan_.result, plan_.columns, plan_.keys, kValueKeys); }
  bool tile_scores() { return tile(plan_.scores, plan_.keys, plan_.depth, plan_.depth); }

  /// Tiles of `block` follow each other: all rows, and some of `columns`.
  bool tile(const std::string& name, int64_t columns, int64_t terms, int64_t step) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts& block = *find_block(blocks, name);
    const auto& indices = block.store->indices;
    const auto* row = indices[indices.size() - 2].as<VarRef>();
    const auto* column = indices.back().as<VarRef>();
    if (row == nullptr || column == nullptr) return false;
    GpuTile tile;
    tile.axes.resize(indices.size() - 2);  // of the heads: decided outside
    tile.axes.push_back({block.loop_of(row->var), plan_.share.rows, plan_.share.warps,
                         plan_.share.rows / plan_.share.warps, 1});
    tile.axes.push_back(axis_of(block.loop_of(column->var), columns, kScoreKeys));
    for (const Iter& iter : block.block->iters)
      if (iter.kind == IterKind::Reduce) tile.reduces = {block.loop_of(iter.var)};
    tile.extents = {terms}, tile.steps = {step}, tile.depth = kAttentionDepth;
    return apply_gpu_tile(draft_, name, tile, plan_.share.loop);
  }

  bool share_out_rows() {
    for (const std::string& name : plan_.between) {
      if (name == finisher_) continue;
      if (!(is_sum(name) ? reduce_rows_of_block(draft_, name, plan_.share, target_)
                         : spread_rows(draft_, name, plan_.share)))
        return false;
    }
    return true;
  }

  Draft& draft_;
  GpuAttentionPlan plan_;
  const hw::GpuTarget& target_;
  schedule::Names blocks_;
  bool in_parts_ = false;  ///< others read what lies between the products (gpu_key_parts.h)
  std::string finisher_;   ///< reads the scores out of registers
};

}  // namespace

Answer<std::string> schedule_gpu_attention(Draft& draft, const hw::GpuTarget& target) {
  const Answer<GpuAttentionPlan> plan = plan_attention(draft.func(), target);
  if (!plan) return decline("{}", plan.error());
  const Draft::Mark before = draft.mark();
  if (AttentionScheduler(draft, *plan, target).run()) return plan->result;
  draft.revert(before);
  return decline("a step of its schedule does not apply to these loops");
}

int64_t gpu_attention_rows(const Func& func, int64_t keys, const hw::GpuTarget& target) {
  Answer<GpuAttentionPlan> plan = find_plan(func);
  if (!plan) return 0;
  plan->keys = keys;
  int64_t rows = kMostQueries;
  while (rows >= kLeastRows && !fits(*plan, rows, target)) rows /= 2;
  return rows >= kLeastRows ? rows : 0;
}

}  // namespace tilewright::rules
