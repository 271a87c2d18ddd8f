#include "tilewright/accel/spatial/sim/count.h"

#include <algorithm>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"
#include "tilewright/base/integers.h"

namespace tilewright::spatial {
namespace {

uint64_t bursts(const Design& design, const Runs& runs) {
  return runs.count() *
         static_cast<uint64_t>(ceil_div(static_cast<int64_t>(runs.bytes), design.burst_bytes));
}

/// How often a step fetches its row of a factor: without links each unit asks for itself.
int64_t fetches(const Design& design, int factor) {
  if (design.links != Links::None) return 1;
  if (design.unit == Unit::Gemv) return factor == 0 ? 1 : design.units();
  if (design.unit == Unit::Conv2d) return design.rows;
  return factor == 0 ? design.cols : design.rows;
}

void count_work(const Design& design, const Load& load, Counters& counters) {
  const Runs all = runs(load);
  ++counters.loads;
  counters.load_bytes += all.count() * all.bytes;
  counters.load_bursts += bursts(design, all);
  counters.zero_bytes += box_bytes(load) + 4 * uint64_t{load.bias_words} - all.count() * all.bytes;
}

void count_work(const Design& design, const Store& store, Counters& counters) {
  const Runs all = runs(store);
  ++counters.stores;
  counters.store_bytes += all.count() * all.bytes;
  counters.store_bursts += bursts(design, all);
}

/// Rows of the tile's lanes are read whole, also where lanes of the last block do nothing.
void count_work(const Design& design, const Compute& compute, Counters& counters) {
  const RoleLanes all = all_lanes(design);
  const RoleLanes most = {std::min<int64_t>(all.i, compute.i.count),
                          std::min<int64_t>(all.j, compute.j.count),
                          std::min<int64_t>(all.k, compute.k.count)};
  const std::array<int64_t, 2> row = row_lanes(design, most);
  uint64_t steps = 0, blocks = 1;
  for (const Share& share : shares(design, compute)) {
    steps += share.steps();
    counters.macs +=
        share.steps() * static_cast<uint64_t>(share.lanes.i * share.lanes.j * share.lanes.k);
  }
  for (size_t l = 0; l < compute.block_loops; ++l) blocks *= compute.loops[l].count;
  ++counters.computes;
  counters.steps += steps;
  counters.first_bytes += steps * static_cast<uint64_t>(row[0] * fetches(design, 0));
  if (weights_stay(design))
    counters.second_bytes +=
        blocks * static_cast<uint64_t>(taps(compute) * design.rows *
                                       (design.unit == Unit::Conv2d ? most.k : most.j));
  else
    counters.second_bytes += steps * static_cast<uint64_t>(row[1] * fetches(design, 1));
}

}  // namespace

void count(const Design& design, const Insn& insn, Counters& counters) {
  ++counters.insns;
  std::visit([&](const auto& work) { count_work(design, work, counters); }, insn.work);
}

}  // namespace tilewright::spatial
