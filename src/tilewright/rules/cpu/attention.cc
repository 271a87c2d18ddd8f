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
/// Rows of a register tile, roughly. Strips are made of whole tiles: where the cache holds longer
/// ones, those of fewer than `kLeastRows` are left to a shorter last strip.
constexpr int64_t kTileRows = 4, kLeastRows = 7;
/// Scores, their exponentials and the weights are kept, in this part of L2.
constexpr int64_t kCopies = 3, kScoresShare = 4;

struct AttentionPlan : AttentionBlocks {
  int64_t queries = 0;
  int64_t rows = 0;  ///< per strip
  bool whole() const { return queries % rows == 0; }
};

/// Rows of strips that do not divide the queries: so many that what is left is made of whole tiles,
/// too.
int64_t rows_before_a_shorter_strip(int64_t queries, int64_t most) {
  if (queries <= most) return queries;
  const int64_t longest = most / kTileRows * kTileRows;
  for (int64_t rows = longest; rows >= kLeastRows; rows -= kTileRows)
    if (const int64_t left = queries % rows; left < kLeastRows || left % kTileRows == 0)
      return rows;
  return longest;
}

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
  // Threads share strips that divide the queries; else the last one stands alone in each batch, and
  // they share batches.
  const auto feeds = [&](int64_t work) { return work % threads == 0 || work >= 4 * threads; };
  const int64_t fitting = target.l2_bytes / kScoresShare / std::max<int64_t>(kCopies * keys * 4, 1);
  const int64_t most = std::min({rows, kMostRows, fitting});
  const bool may_be_shorter = feeds(batch);
  const int64_t least = may_be_shorter && most >= kLeastRows ? kLeastRows : 1;
  for (int64_t r = most; r >= least && plan.rows == 0; --r)
    if (rows % r == 0 && feeds(batch * (rows / r))) plan.rows = r;
  if (plan.rows == 0 && may_be_shorter) plan.rows = rows_before_a_shorter_strip(rows, most);
  plan.queries = rows;
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
    if (!split_rows()) return false;
    plan_.between.insert(plan_.between.begin(), plan_.scores);
    for (size_t i = plan_.between.size(); i-- > 0;)
      if (!draft_.attempt(schedule::ComputeAt{plan_.between[i], strip_})) return false;
    if (!plan_.whole() && !cut_last_strip()) return false;
    for (const std::string& part :
         plan_.whole() ? schedule::Names{""} : schedule::Names{"@0", "@1"})
      if (!finish_strip(part)) return false;
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
    around_.assign(nest.names.begin(), at);
    return true;
  }

  /// Makes the last strip, of fewer rows, a loop of its own: loops and blocks of the others end in
  /// `@0` then, its own in `@1`. What is not in the loop would not be cut with it.
  bool cut_last_strip() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const Buffer sums = find_block(blocks, plan_.result)->store->buffer;
    if (!draft_.attempt(schedule::ComputeAt{init_of(plan_.result), strip_})) return false;
    fuse_readers(draft_, sums, strip_);
    return draft_.attempt(schedule::Cut{strip_, {plan_.queries / plan_.rows, 1}});
  }

  /// `part`: what the names in it end in.
  bool finish_strip(const std::string& part) {
    draft_.kept = around_;
    draft_.kept.push_back(strip_ + part);
    for (const std::string& product : {plan_.result, plan_.scores})
      if (!tile_by_model(draft_, product + part, target_, TileRows::Whole)) return false;
    for (const std::string& name : plan_.between) finish(name, part);
    return true;
  }

  /// Rows are worked on one by one, along their elements.
  void finish(const std::string& whole, const std::string& part) {
    const std::string name = whole + part;
    if (draft_.done.contains(name)) return;
    draft_.done.insert(name);
    draft_.done.insert(init_of(name));
    if (std::find(plan_.sums.begin(), plan_.sums.end(), whole) == plan_.sums.end()) {
      vectorize_innermost(draft_, name, target_);
      return;
    }
    const LoopNest nest = draft_.nest_inside(name, strip_ + part);
    if (nest.names.size() > 1)
      draft_.attempt(schedule::ComputeAt{init_of(name), nest.names[nest.names.size() - 2]});
  }

  void share_out() {
    if (threads_ < 2) return;
    if (plan_.whole()) around_.push_back(strip_);
    if (around_.empty()) return;
    std::string loop = around_.front();
    for (size_t i = 1; i < around_.size(); ++i) {
      if (!draft_.attempt(schedule::Fuse{loop, around_[i]})) break;
      loop += "*" + around_[i];
    }
    draft_.attempt(schedule::Parallel{loop});
  }

  Draft& draft_;
  AttentionPlan plan_;
  const hw::CpuTarget& target_;
  int threads_;
  std::string strip_;                ///< the loop over strips
  std::vector<std::string> around_;  ///< loops around it
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
