#include "tilewright/tune/tiling_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"

namespace tilewright::tune {
namespace {

using BlockKind = rules::BlockFacts::Kind;

double bytes_of(const rules::BlockFacts& block) {
  return static_cast<double>(block.work()) * bit_width(block.store->buffer.dtype()) / 8;
}

/// `name` with what may not stand in the name of a decision replaced; new among `taken`.
std::string decision_name(std::string name, std::set<std::string>& taken) {
  for (char& c : name)
    if (c == '.' || c == '@' || c == '~') c = '_';
  while (!taken.insert(name).second) name += "_";
  return name;
}

class TilingPlanner {
 public:
  explicit TilingPlanner(const measure::Task& task) : task_(task), draft_(task.func) {}

  std::optional<TilingPlan> run() {
    inline_passing(draft_);
    std::vector<rules::BlockFacts> blocks = draft_.blocks();
    const rules::BlockFacts* main = main_block(draft_.func(), blocks);
    if (main == nullptr) return std::nullopt;
    plan_.main = main->name;
    plan_.work = main->work() * (1 + main->cost);
    plan_.lanes = task_.cpu().lanes(bit_width(accumulator(main->store->buffer.dtype())));
    for (const Iter& iter : main->block->iters)
      plan_.loops.push_back({main->loop_of(iter.var), decision_name(iter.var.name(), taken_),
                             std::max<int64_t>(main->extent_of(iter.var), 1),
                             iter.kind == IterKind::Reduce});
    if (plan_.moving(false).empty()) return std::nullopt;
    add_producers(blocks, *main);
    if (main->kind == BlockKind::Reduce) add_readers();
    return std::move(plan_);
  }

 private:
  /// Element-wise blocks that the main one reads.
  void add_producers(const std::vector<rules::BlockFacts>& blocks, const rules::BlockFacts& main) {
    for (const rules::BlockFacts& block : blocks) {
      if (block.kind != BlockKind::Injective ||
          rules::is_output(draft_.func(), block.store->buffer))
        continue;
      const bool read = std::any_of(main.loads.begin(), main.loads.end(), [&](const Load& load) {
        return load.buffer == block.store->buffer;
      });
      if (!read) continue;
      TilingAround around;
      around.block = block.name;
      around.bytes = bytes_of(block);
      walk(block.store->value, [&](const Expr& e) { around.pads |= e.as<Select>() != nullptr; });
      around.decision = decision_name(block.name, taken_);
      around.ways = {"apart", "inline", "outer", "middle"};
      plan_.around.push_back(std::move(around));
    }
  }

  /// The buffer of the sums and the blocks that finish them.
  void add_readers() {
    for (const rules::BlockFacts& block : draft_.blocks()) {
      if (block.name != plan_.main || !rules::is_output(draft_.func(), block.store->buffer))
        continue;
      plan_.staged = draft_.attempt(schedule::CacheWrite{plan_.main, plan_.main + ".acc", ""});
      break;
    }
    const std::vector<rules::BlockFacts> blocks = draft_.blocks();
    const Buffer sums = rules::find_block(blocks, plan_.main)->store->buffer;
    plan_.sums = sums.name();
    for (const rules::BlockFacts& block : blocks)
      if (block.kind == BlockKind::Init && block.store->buffer == sums) plan_.init = block.name;
    for (const rules::BlockFacts* reader : readers(blocks, sums)) {
      if (reader->name == plan_.main) continue;
      TilingAround around;
      around.block = reader->name;
      around.reads_main = true;
      around.bytes = bytes_of(*reader);
      around.decision = decision_name(reader->name, taken_);
      around.ways = {"apart", "tile", "outer"};
      plan_.around.push_back(std::move(around));
    }
  }

  const measure::Task& task_;
  rules::Draft draft_;
  TilingPlan plan_;
  std::set<std::string> taken_ = {"unroll"};
};

}  // namespace

const rules::BlockFacts* main_block(const Func& func,
                                    const std::vector<rules::BlockFacts>& blocks) {
  const rules::BlockFacts* best = nullptr;
  const auto consider = [&](const rules::BlockFacts& block) {
    if (block.work() > (best == nullptr ? 0 : best->work())) best = &block;
  };
  for (const rules::BlockFacts& block : blocks)
    if (block.kind == BlockKind::Reduce) consider(block);
  if (best != nullptr) return best;
  for (const rules::BlockFacts& block : blocks)
    if (block.kind == BlockKind::Injective && rules::is_output(func, block.store->buffer))
      consider(block);
  return best;
}

void inline_passing(rules::Draft& draft) {
  std::set<std::string> refused;
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<rules::BlockFacts> blocks = draft.blocks();
    for (const rules::BlockFacts& block : blocks) {
      if (block.kind != BlockKind::Injective || refused.contains(block.name) ||
          rules::is_output(draft.func(), block.store->buffer))
        continue;
      const auto all = readers(blocks, block.store->buffer);
      const bool passing = std::all_of(all.begin(), all.end(), [](const rules::BlockFacts* reader) {
        return reader->kind == BlockKind::Injective;
      });
      const std::string name = block.name;
      changed = passing && draft.attempt(schedule::Inline{name});
      if (changed) break;
      refused.insert(name);
    }
  }
}

std::string TilingLoop::at(int level) const {
  std::string loop = name;
  for (int i = 0; i < level; ++i) loop += ".i";
  return level == kTilingLevels - 1 ? loop : loop + ".o";
}

std::vector<TilingLoop> TilingPlan::moving(bool reduces) const {
  std::vector<TilingLoop> out;
  for (const TilingLoop& loop : loops)
    if (loop.reduces == reduces && loop.extent > 1 && !loop.name.empty()) out.push_back(loop);
  return out;
}

std::optional<TilingPlan> tiling_plan(const measure::Task& task) {
  return TilingPlanner(task).run();
}

}  // namespace tilewright::tune
