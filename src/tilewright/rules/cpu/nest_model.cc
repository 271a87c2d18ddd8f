// The time of a schedule as it is, not as a rule would have made it. Loops that are vectors or
// unrolled are the tile, those around it the nest. Arithmetic is limited by the sums that the tile
// keeps going, by its loads or, if it does not fit the registers, by spilling; each cache level by
// the bytes that the nest asks of the one behind it (cost::traffic); threads by the one that has
// most pieces.
#include "tilewright/rules/cpu/nest_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/integers.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/common/program_facts.h"
#include "tilewright/rules/common/work.h"

namespace tilewright::rules {
namespace {

/// Chains of multiply-adds that hide each other's latency.
constexpr double kSumChains = 8;
/// Vector operations lost where one tile ends and the next begins, and per sum of it.
constexpr double kTileStart = 12, kFinishOps = 3;
/// Part of a cache that may be filled by what is to stay in it.
constexpr double kFill = 0.75;
/// Sums in memory are read and written at every step, and most of those that spill; a store costs
/// as much as two loads, and the next step waits for it. units: loads
constexpr double kMemoryOps = 6;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double share_of(const hw::CpuRates& rates, DType dtype, double rows, double columns) {
  const auto whole = [](double v) { return static_cast<int64_t>(std::min(v, 1e6)); };
  return std::clamp(rates.tile_share(dtype, whole(rows), whole(columns)), 0.1, 1.0);
}

}  // namespace

cost::Prediction predict_nest(const cost::Contraction& c, const NestForm& form,
                              const hw::CpuTarget& target, int threads) {
  const hw::CpuRates rates = target.rates_or_assumed();
  double tiles = 1, steps = 1, rows = 1;
  for (const cost::NestLoop& loop : form.nest) {
    const auto trips = static_cast<double>(loop.trips);
    (c.axes[static_cast<size_t>(loop.axis)].reduces ? steps : tiles) *= trips;
  }
  for (size_t axis = 0; axis < c.axes.size(); ++axis) {
    const auto size = static_cast<double>(form.tile[axis]);
    if (c.axes[axis].reduces)
      steps *= size;
    else if (static_cast<int>(axis) != c.lanes)
      rows *= size;
  }
  const double columns = static_cast<double>(
      ceil_div(form.tile[static_cast<size_t>(c.lanes)], static_cast<int64_t>(c.lane_count)));
  double multiply_add = 2.0 * c.lane_count / std::max(rates.peak(c.dtype), 1e-9);
  const double load =
      rates.l1.one > 0 ? static_cast<double>(target.vector_bytes) / rates.l1.one : multiply_add;
  const double sums = rows * columns;
  const double busy =
      static_cast<double>(std::clamp<int64_t>(form.pieces, 1, std::max(threads, 1)));
  const double issue = std::max(sums * (c.fused ? 1 : 2), rates.tiles.empty() ? kSumChains : 0.0) /
                       (rates.tiles.empty() ? 1 : share_of(rates, c.dtype, rows, columns));
  const bool fits = form.in_registers && sums + columns + 1 <= target.vector_registers;
  double loads = (columns + (c.reuse ? rows : sums)) * load / multiply_add;
  if (!fits) loads += kMemoryOps * sums * load / multiply_add;
  cost::Prediction time;
  time.compute = tiles * (steps * std::max(issue, loads) + kTileStart + kFinishOps * sums) *
                 multiply_add / busy;
  time.l1 = tiles * steps * loads * multiply_add / busy;
  const int workers = static_cast<int>(busy);
  const auto bytes = [&](int64_t capacity) {
    return sum(cost::traffic(c, form.nest, form.tile, kFill * static_cast<double>(capacity)));
  };
  time.l2 = bytes(target.l1_bytes) / rates.l2.of(workers);
  time.l3 = bytes(target.l2_bytes) / rates.l3.of(workers);
  const double far = bytes(target.l3_bytes);
  if (far > static_cast<double>(target.l3_bytes)) time.dram = far / rates.dram.of(workers);
  if (threads > 1) {
    const auto most = static_cast<double>(ceil_div(form.pieces, static_cast<int64_t>(busy)));
    const double wait = most * busy / static_cast<double>(std::max<int64_t>(form.pieces, 1)) - 1;
    time.join = rates.fork_join_ns + wait * time.total();
  }
  return time;
}

cost::Prediction predict_plain(const Func& func, const hw::CpuTarget& target, int threads) {
  const hw::CpuRates rates = target.rates_or_assumed();
  const Work work = work_of(func);
  cost::Prediction time;
  const double lanes = std::max(1, target.lanes(bit_width(work.dtype)));
  time.compute =
      work.operations * lanes / std::max(rates.peak(work.dtype), 1e-9) / std::max(threads, 1);
  double bytes = 0;
  for (const Param& param : func.params) {
    double size = bit_width(param.buffer.dtype()) / 8.0;
    for (const Expr& extent : param.buffer.shape())
      size *= static_cast<double>(as_int(extent).value_or(1));
    bytes += size;
  }
  time.dram = bytes / rates.dram.of(std::max(threads, 1));
  return time;
}

std::optional<NestForm> nest_form(const Func& scheduled, const std::string& name,
                                  const cost::Contraction& c) {
  const std::vector<BlockFacts> blocks = collect_blocks(scheduled);
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr || block->block->iters.size() != c.axes.size()) return std::nullopt;
  std::map<std::string, const For*> loops;
  walk(scheduled.body, [&](const Stmt& s) {
    if (const For* loop = s.as<For>()) loops[loop->var.name()] = loop;
  });
  NestForm form;
  form.tile.assign(c.axes.size(), 1);
  std::vector<int64_t> left;
  for (const cost::ContractionAxis& axis : c.axes) left.push_back(axis.extent);
  const auto axis_of = [&](const Var& var) {
    for (size_t i = 0; i < block->block->iters.size(); ++i)
      if (uses(block->block->iters[i].binding, var)) return static_cast<int>(i);
    return -1;
  };
  std::vector<int> written;
  for (size_t i = 0; i < block->loops.size(); ++i) {
    const For& loop = *loops.at(block->loops[i]);
    const int64_t extent = std::max<int64_t>(block->extents[i], 1);
    const int axis = axis_of(loop.var);
    if (loop.kind == ForKind::Parallel) form.pieces *= extent;
    if (axis < 0 || extent == 1) continue;
    const auto at = static_cast<size_t>(axis);
    const bool tile =
        loop.kind == ForKind::Vector || (loop.kind == ForKind::Unroll && !c.axes[at].reduces);
    if (tile)
      form.tile[at] *= extent;
    else
      form.nest.push_back({axis, std::min(extent, c.axes[at].extent)});
  }
  bool reduces = false;
  for (const cost::NestLoop& loop : form.nest) {
    reduces |= c.axes[static_cast<size_t>(loop.axis)].reduces;
    if (reduces && !c.axes[static_cast<size_t>(loop.axis)].reduces) form.in_registers = false;
  }
  return form;
}

}  // namespace tilewright::rules
