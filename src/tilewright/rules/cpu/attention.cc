#include "tilewright/rules/cpu/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/rules/cpu/common_steps.h"
#include "tilewright/rules/cpu/register_tile.h"
#include "tilewright/rules/cpu/strip_steps.h"
#include "tilewright/rules/cpu/tile.h"

namespace tilewright::rules {
namespace {

/// Rows of a strip at most: the keys and values are read once per strip.
constexpr int64_t kMostRows = 32;
/// Scores, their exponentials and the weights are kept, in this part of L2.
constexpr int64_t kCopies = 3, kScoresShare = 4;

struct AttentionPlan : AttentionBlocks {
  int64_t rows = 0;  ///< per strip
};

Answer<AttentionPlan> plan_attention(const Func& func, const hw::CpuTarget& target, int threads) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const Answer<AttentionBlocks> found = find_attention(func, blocks);
  if (!found) return decline("{}", found.error());
  AttentionPlan plan{*found};
  const BlockFacts *scores = find_block(blocks, plan.scores),
                   *result = find_block(blocks, plan.result);
  const int64_t rows = row_extent(*result);
  const int64_t keys = as_int(scores->store->buffer.shape().back()).value_or(0);
  const int64_t batch = rows == 0 ? 0 : [&] {
    int64_t count = 1;
    for (const Expr& extent : result->store->buffer.shape()) count *= as_int(extent).value_or(0);
    return count / rows /
           std::max<int64_t>(as_int(result->store->buffer.shape().back()).value_or(1), 1);
  }();
  for (int64_t r = std::min(rows, kMostRows); r >= 1 && plan.rows == 0; --r) {
    const int64_t strips = rows % r == 0 ? batch * (rows / r) : 0;
    const bool fits = kCopies * r * keys * 4 <= target.l2_bytes / kScoresShare;
    if (strips > 0 && fits && (strips % threads == 0 || strips >= 4 * threads)) plan.rows = r;
  }
  if (plan.rows == 0)
    return decline(
        "no strip of the {} queries leaves the scores of {} keys in a part of L2 and work for all "
        "threads",
        rows, keys);
  return plan;
}

class AttentionRule {
 public:
  AttentionRule(Draft& draft, AttentionPlan plan, const hw::CpuTarget& target, int threads)
      : draft_(draft), plan_(std::move(plan)), target_(target), threads_(threads) {}

  bool run() {
    if (finisher_of(draft_.blocks(), plan_.scores).empty()) {
      if (!draft_.attempt(schedule::CacheWrite{plan_.scores, plan_.scores + ".tile", ""}))
        return false;
      plan_.between.insert(plan_.between.begin(), plan_.scores + ".wb");
    }
    if (!split_rows() || !tile_by_model(draft_, plan_.result, target_, TileRows::Whole))
      return false;
    plan_.between.insert(plan_.between.begin(), plan_.scores);
    for (size_t i = plan_.between.size(); i-- > 0;)
      if (!draft_.attempt(schedule::ComputeAt{plan_.between[i], strip_})) return false;
    if (!tile_by_model(draft_, plan_.scores, target_, TileRows::Whole)) return false;
    for (const std::string& name : plan_.between) finish(name);
    share_out();
    return true;
  }

 private:
  /// The loop over strips; the loops around it stay where they are.
  bool split_rows() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts& block = *find_block(blocks, plan_.result);
    const VarRef* row = block.store->indices[block.store->indices.size() - 2].as<VarRef>();
    if (row == nullptr) return false;
    const std::string loop = block.loop_of(row->var);
    if (loop.empty() || !draft_.attempt(schedule::Split{loop, plan_.rows})) return false;
    strip_ = loop + ".o";
    const LoopNest nest = draft_.nest_of(plan_.result);
    const auto at = std::find(nest.names.begin(), nest.names.end(), strip_);
    if (at == nest.names.end()) return false;
    draft_.kept.assign(nest.names.begin(), at + 1);
    return true;
  }

  /// Rows are worked on one by one, along their elements.
  void finish(const std::string& name) {
    if (draft_.done.contains(name)) return;
    draft_.done.insert(name);
    draft_.done.insert(name + ".init");
    if (std::find(plan_.sums.begin(), plan_.sums.end(), name) == plan_.sums.end()) {
      vectorize_innermost(draft_, name, target_);
      return;
    }
    const LoopNest nest = draft_.nest_inside(name, strip_);
    if (nest.names.size() > 1)
      draft_.attempt(schedule::ComputeAt{name + ".init", nest.names[nest.names.size() - 2]});
  }

  void share_out() {
    if (threads_ < 2) return;
    std::string loop = draft_.kept.front();
    for (size_t i = 1; i < draft_.kept.size(); ++i) {
      if (!draft_.attempt(schedule::Fuse{loop, draft_.kept[i]})) break;
      loop += "*" + draft_.kept[i];
    }
    draft_.attempt(schedule::Parallel{loop});
  }

  Draft& draft_;
  AttentionPlan plan_;
  const hw::CpuTarget& target_;
  int threads_;
  std::string strip_;
};

}  // namespace

int64_t row_extent(const BlockFacts& block) {
  const auto& shape = block.store->buffer.shape();
  return shape.size() < 2 ? 0 : as_int(shape[shape.size() - 2]).value_or(0);
}

std::string finisher_of(const std::vector<BlockFacts>& blocks, const std::string& scores) {
  std::string only;
  for (const BlockFacts* reader : readers(blocks, find_block(blocks, scores)->store->buffer)) {
    if (reader->name == scores) continue;
    if (!only.empty() || reader->kind != BlockFacts::Kind::Injective) return "";
    only = reader->name;
  }
  return only;
}

Answer<AttentionBlocks> find_attention(const Func& func, const std::vector<BlockFacts>& blocks) {
  const auto products = std::count_if(blocks.begin(), blocks.end(), [](const BlockFacts& block) {
    return product_of(block).has_value();
  });
  if (products != 2) return decline("the kernel's sums of products are {}, not two", products);
  AttentionBlocks found;
  const BlockFacts *scores = nullptr, *result = nullptr;
  for (const BlockFacts& block : blocks) {
    if (block.kind == BlockFacts::Kind::Other)
      return decline("block `{}` is neither element-wise nor a sum", block.name);
    if (block.kind == BlockFacts::Kind::Init) continue;
    const bool reduces = block.kind == BlockFacts::Kind::Reduce;
    if (reduces && product_of(block)) {
      if (scores != nullptr && found.sums.empty())
        return decline("nothing is summed between the products `{}` and `{}`", scores->name,
                       block.name);
      (scores == nullptr ? scores : result) = &block;
    } else if (result == nullptr) {
      if (scores == nullptr) return decline("block `{}` comes before any product", block.name);
      if (is_output(func, block.store->buffer))
        return decline("the output `{}` is written before a second product",
                       block.store->buffer.name());
      found.between.push_back(block.name);
      if (reduces) found.sums.push_back(block.name);
    }
  }
  if (row_extent(*scores) != row_extent(*result))
    return decline("the two products have {} and {} rows", row_extent(*scores),
                   row_extent(*result));
  if (row_extent(*result) < 2) return decline("the products have {} rows", row_extent(*result));
  if (readers(blocks, scores->store->buffer).empty())
    return decline("nothing reads the first product");
  found.scores = scores->name;
  found.result = result->name;
  return found;
}

bool is_attention(const Func& func, const hw::CpuTarget& target, int threads) {
  return plan_attention(func, target, threads).has_value();
}

Answer<Done> schedule_attention(Draft& draft, const hw::CpuTarget& target, int threads) {
  const Answer<AttentionPlan> plan = plan_attention(draft.func(), target, threads);
  if (!plan) return decline("{}", plan.error());
  const Answer<Done> made =
      all_or_nothing(draft, [&] { return AttentionRule(draft, *plan, target, threads).run(); });
  draft.kept.clear();
  return made;
}

}  // namespace tilewright::rules
