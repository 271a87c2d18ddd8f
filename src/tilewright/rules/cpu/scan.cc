// A recurrence, for example the LSTM: for t { for blocks of hidden elements { gates; state } }.
// Time stays the outermost loop. In each block of a step, the last loop becomes lanes and short
// loops around it are written out, as far as 28 accumulators reach; sums that fit are kept in
// registers; and the first loop inside of time goes to threads if a step is worth it.
#include "tilewright/rules/cpu/scan.h"

#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"

namespace tilewright::rules {
namespace {

/// Loops of at most so many iterations are written out, and so many accumulators fit registers.
constexpr int64_t kUnroll = 8, kAccumulators = 28;

bool scans(const BlockFacts& block) {
  return std::any_of(block.block->iters.begin(), block.block->iters.end(),
                     [](const Iter& iter) { return iter.kind == IterKind::Scan; });
}

/// Names of the loop over time around `block`.
std::string time_loop(const BlockFacts& block) {
  for (const Iter& iter : block.block->iters)
    if (iter.kind == IterKind::Scan) return block.loop_of(iter.var);
  return "";
}

bool reduces_over(const BlockFacts& block, const std::string& loop) {
  for (const Iter& iter : block.block->iters)
    if (block.loop_of(iter.var) == loop) return iter.kind == IterKind::Reduce;
  return false;
}

/// Whether `block` is the only one inside `loop`.
bool alone_in(const std::vector<BlockFacts>& blocks, const std::string& block,
              const std::string& loop) {
  return std::none_of(blocks.begin(), blocks.end(), [&](const BlockFacts& other) {
    return other.name != block &&
           std::find(other.loops.begin(), other.loops.end(), loop) != other.loops.end();
  });
}

/// Lanes along the last loop; the loops of this block alone around it written out.
void use_registers(Draft& draft, const std::string& name, const hw::CpuTarget& target) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts& block = *find_block(blocks, name);
  const LoopNest nest = draft.nest_of(name);
  const int64_t lanes = target.lanes(std::min(32, bit_width(block.store->buffer.dtype())));
  if (nest.names.empty() || nest.extents.back() < 4) return;
  std::vector<std::string> unrolled;
  int64_t copies = 1;
  for (size_t i = nest.names.size() - 1; i-- > 0;) {
    if (!alone_in(blocks, name, nest.names[i]) || nest.extents[i] > kUnroll ||
        reduces_over(block, nest.names[i]))
      break;
    copies *= nest.extents[i];
    if (copies > kAccumulators) break;
    unrolled.push_back(nest.names[i]);
  }
  std::string loop = nest.names.back();
  if (reduces_over(block, loop)) return;
  if (nest.extents.back() > lanes) {
    if (!draft.attempt(schedule::Split{loop, lanes})) return;
    loop += ".i";
  }
  if (!draft.attempt(schedule::Vectorize{loop})) return;
  for (const std::string& u : unrolled) draft.attempt(schedule::Unroll{u});
}

/// Operations of all blocks inside `loop`, per iteration of the loop over time.
int64_t work_inside(const Draft& draft, const std::string& loop) {
  int64_t work = 0;
  for (const BlockFacts& block : draft.blocks()) {
    const auto at = std::find(block.loops.begin(), block.loops.end(), loop);
    if (at == block.loops.end() || !scans(block)) continue;
    const LoopNest nest = draft.nest_of(block.name);
    int64_t product = 1;
    for (size_t i = static_cast<size_t>(at - block.loops.begin()); i < nest.extents.size(); ++i)
      product *= nest.extents[i];
    work += product;
  }
  return work;
}

/// Sums that fit registers stay there.
void keep_in_registers(Draft& draft, const hw::CpuTarget& target) {
  std::set<std::string> buffers;
  for (const BlockFacts& block : draft.blocks()) {
    if (block.kind != BlockFacts::Kind::Other || block.store == nullptr || !scans(block)) continue;
    if (block.store->combine == Combine::Set) continue;
    const Buffer& buffer = block.store->buffer;
    int64_t elements = 1;
    for (const Expr& extent : buffer.shape()) elements *= as_int(extent).value_or(1 << 20);
    const int64_t lanes = target.lanes(bit_width(buffer.dtype()));
    if (elements <= kAccumulators * lanes) buffers.insert(buffer.name());
  }
  for (const std::string& name : buffers) draft.attempt(schedule::SetScope{name, "local"});
}

}  // namespace

void schedule_scans(Draft& draft, const hw::CpuTarget& target, int threads) {
  std::vector<std::string> names;
  for (const BlockFacts& block : draft.blocks())
    if (block.store != nullptr && scans(block)) names.push_back(block.name);
  keep_in_registers(draft, target);
  for (const std::string& name : names) {
    draft.done.insert(name);
    use_registers(draft, name, target);
  }
  for (const std::string& name : names) {
    const std::vector<BlockFacts> blocks = draft.blocks();
    const BlockFacts& block = *find_block(blocks, name);
    const auto time = std::find(block.loops.begin(), block.loops.end(), time_loop(block));
    if (threads < 2 || time == block.loops.end()) continue;
    for (auto loop = time + 1; loop != block.loops.end(); ++loop) {
      const LoopNest nest = draft.nest_of(name);
      if (nest.extents[static_cast<size_t>(loop - block.loops.begin())] < 2) continue;
      if (work_inside(draft, *loop) >= kParallelWork) draft.attempt(schedule::Parallel{*loop});
      break;
    }
  }
}

Answer<Done> find_scans(const Func& func) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  if (std::none_of(blocks.begin(), blocks.end(), scans))
    return decline("no loop hands values from one step to the next");
  return Done{};
}

}  // namespace tilewright::rules
