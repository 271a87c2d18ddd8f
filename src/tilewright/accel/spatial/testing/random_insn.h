// Random designs, and random instructions that they can do.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tilewright/accel/spatial/isa.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"
#include "tilewright/base/check.h"
#include "tilewright/base/rng.h"

namespace tilewright::spatial::testing {

/// Small, so that instructions often meet.
inline Design small_design(Rng& rng) {
  while (true) {
    Design design;
    design.name = "small";
    design.unit = static_cast<Unit>(rng.below(4));
    design.dataflow = static_cast<Dataflow>(rng.below(2));
    design.rows = static_cast<int>(rng.between(1, 6));
    design.cols = static_cast<int>(rng.between(1, 6));
    design.links = static_cast<Links>(rng.below(3));
    design.spad_kb = 8;
    design.banks = static_cast<int>(rng.between(1, 5));
    design.bank_bytes = 4 << rng.below(3);
    design.local_kb = static_cast<int>(rng.between(1, 2));
    design.bus_bytes = 8 << rng.below(2);
    design.burst_bytes = 64;
    if (problems(design).empty()) return design;
  }
}

/// Bytes of DRAM that random instructions use: they read the first half and write the second one.
inline constexpr int64_t kRandomDram = 16384;

class RandomInsns {
 public:
  /// `dram`: address of the first byte.
  RandomInsns(const Design& design, int64_t dram, Rng& rng)
      : design_(design), dram_(dram), rng_(rng) {}

  /// Of any kind, without tokens; `check_fields` accepts it.
  Insn next() {
    while (true) {
      Insn insn;
      const int64_t kind = rng_.below(10);
      if (kind < 3)
        insn.work = load();
      else if (kind < 7)
        insn.work = compute();
      else
        insn.work = store();
      if (check_fields(design_, insn)) return insn;
    }
  }

  /// Instructions that define the scratchpad, the bias and the sums of a COMPUTE with one tap.
  std::vector<Insn> prologue() {
    Load all;
    all.dram = static_cast<uint64_t>(dram_) + 4 * kBiasWords;
    all.axes.back() = {4096, 0, 0, 1, 1};
    all.run_axes = kAxes;
    all.bias_words = kBiasWords;
    Load rest = all;
    rest.spad = 4096;
    rest.bias_words = 0;
    Compute zero;
    zero.begins = true;
    const RoleLanes lanes = all_lanes(design_);
    zero.i.count = static_cast<uint16_t>(lanes.i);
    zero.j.count = static_cast<uint16_t>(lanes.j);
    zero.k.count = static_cast<uint16_t>(lanes.k);
    zero.loops[0].count = static_cast<uint16_t>(sum_limit(design_, zero));
    zero.loops[0].sum_step = 1;
    zero.row_step = 8;
    return {{0, 0, all}, {0, 0, rest}, {0, 0, zero}};
  }

 private:
  uint32_t number(int64_t low, int64_t high) {
    return static_cast<uint32_t>(rng_.between(low, high));
  }

  /// Steps of dimensions in any order, so that no two positions meet. `from`: the step of the
  /// innermost one.
  std::vector<int64_t> steps_apart(const std::vector<int64_t>& counts, int64_t from) {
    std::vector<size_t> order(counts.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>(rng_.below(static_cast<int64_t>(i)))]);
    std::vector<int64_t> steps(counts.size());
    for (const size_t at : order) {
      steps[at] = from + (rng_.chance(0.3) ? rng_.below(5) : 0);
      from = steps[at] * counts[at];
    }
    return steps;
  }

  Load load() {
    Load load;
    for (LoadAxis& axis : load.axes) {
      if (rng_.chance(0.4)) continue;
      axis.count = number(1, 6);
      if (rng_.chance(0.2)) axis.before = static_cast<uint16_t>(rng_.below(axis.count + 1));
      if (rng_.chance(0.2))
        axis.after = static_cast<uint16_t>(rng_.below(axis.count - axis.before + 1));
    }
    load.run_axes = static_cast<uint8_t>(rng_.between(1, kAxes));
    int64_t reach = 1;
    for (int a = kAxes - 1; a >= 0; --a) {
      LoadAxis& axis = load.axes[static_cast<size_t>(a)];
      if (a >= kAxes - load.run_axes) {
        axis.dram_step = static_cast<int32_t>(reach);
        reach *= axis.there();
      } else {
        axis.dram_step = static_cast<int32_t>(rng_.between(-40, 200));
      }
    }
    load.axes.back().dram_step = 1;
    load.lane_axis = static_cast<int8_t>(rng_.between(-1, kAxes - 1));
    place_in_spad(load);
    load.dram = static_cast<uint64_t>(dram_ + rng_.between(1000, kRandomDram / 2 - 6000));
    if (load.run_axes == kAxes && reach > 0 && rng_.chance(0.5)) {
      load.bias_words = static_cast<uint16_t>(rng_.between(1, 20));
      load.bias = static_cast<uint16_t>(rng_.below(40));
    }
    return load;
  }

  /// Axes, and blocks of lanes, beside each other in any order.
  void place_in_spad(Load& load) {
    std::vector<int64_t> counts;
    for (size_t a = 0; a < kAxes; ++a) counts.push_back(load.axes[a].count);
    if (load.lane_axis >= 0) {
      const auto lane = static_cast<size_t>(load.lane_axis);
      load.lanes = static_cast<uint16_t>(number(1, 4));
      counts.push_back((counts[lane] + load.lanes - 1) / load.lanes);
      counts[lane] = std::min<int64_t>(counts[lane], load.lanes);
    }
    const std::vector<int64_t> steps = steps_apart(counts, 1);
    int64_t last = 0;
    for (size_t d = 0; d < counts.size(); ++d) {
      (d < kAxes ? load.axes[d].spad_step : load.lane_pitch) = static_cast<uint32_t>(steps[d]);
      last += (counts[d] - 1) * steps[d];
    }
    if (last < design_.spad_bytes()) load.spad = number(0, design_.spad_bytes() - 1 - last);
  }

  Lanes lanes(Compute& compute, int64_t width, int most_loops) {
    Lanes lanes;
    if (width > 1 && most_loops > 0 && rng_.chance(0.6))
      lanes.loop = static_cast<int8_t>(rng_.below(most_loops));
    const int64_t blocks =
        lanes.loop < 0 ? 1 : compute.loops[static_cast<size_t>(lanes.loop)].count;
    lanes.count = static_cast<uint16_t>((blocks - 1) * width + rng_.between(1, width));
    return lanes;
  }

  Compute compute() {
    const bool stays = weights_stay(design_), conv = design_.unit == Unit::Conv2d;
    Compute compute;
    compute.begins = rng_.chance(0.5);
    if (stays) compute.block_loops = static_cast<uint8_t>(rng_.below(4));
    if (conv) compute.tap_loops = static_cast<uint8_t>(rng_.below(kLoops - compute.block_loops));
    for (int l = 0; l < kLoops; ++l) {
      ComputeLoop& loop = compute.loops[static_cast<size_t>(l)];
      if (rng_.chance(0.5)) loop.count = static_cast<uint16_t>(number(1, 4));
      loop.reduces = rng_.chance(0.4);
      const bool moves_weights =
          !stays || l < compute.block_loops || l >= kLoops - compute.tap_loops;
      loop.spad_step[0] = number(0, 40);
      if (moves_weights) loop.spad_step[1] = number(0, 40);
      loop.sum_step = loop.reduces ? 0 : number(0, 2);
    }
    const RoleLanes all = all_lanes(design_);
    compute.i = lanes(compute, all.i, kLoops);
    compute.j = lanes(compute, all.j, stays ? compute.block_loops : kLoops);
    compute.k = lanes(compute, all.k, stays ? compute.block_loops : kLoops);
    compute.row_step = number(0, 12);
    for (uint32_t& spad : compute.spad) spad = number(0, design_.spad_bytes() - 1);
    compute.sum = number(0, sum_words(design_) - 1);
    return compute;
  }

  Store store() {
    Store store;
    store.wide = rng_.chance(0.3);
    store.run_axes = static_cast<uint8_t>(rng_.between(1, kAxes));
    std::vector<int64_t> outer;
    int64_t reach = stored_bytes(store);
    for (int a = kAxes - 1; a >= 0; --a) {
      StoreAxis& axis = store.axes[static_cast<size_t>(a)];
      if (rng_.chance(0.6)) axis.count = number(1, 6);
      axis.lanes = static_cast<uint16_t>(number(1, 6));
      axis.part_step = static_cast<uint16_t>(rng_.below(3));
      axis.sum_step = number(0, 3);
      if (a >= kAxes - store.run_axes) {
        axis.dram_step = static_cast<int32_t>(reach);
        reach *= axis.count;
      } else {
        outer.push_back(axis.count);
      }
    }
    const std::vector<int64_t> steps = steps_apart(outer, reach);
    int64_t first = 0, last = reach;
    for (size_t o = 0; o < outer.size(); ++o) {
      const bool backwards = rng_.chance(0.2);
      store.axes[outer.size() - 1 - o].dram_step =
          static_cast<int32_t>(backwards ? -steps[o] : steps[o]);
      (backwards ? first : last) += (outer[o] - 1) * steps[o];
    }
    const int64_t room = kRandomDram / 2 - first - last;
    // Too far apart: beyond DRAM, so that it is drawn again.
    store.dram =
        room < 0 ? ~uint64_t{0}
                 : static_cast<uint64_t>(dram_ + kRandomDram / 2 + first + rng_.between(0, room));
    store.sum = number(0, sum_words(design_) - 1);
    store.bias_axis = static_cast<int8_t>(rng_.between(-1, kAxes - 1));
    store.bias = static_cast<uint16_t>(rng_.below(60));
    store.shift = static_cast<uint8_t>(rng_.chance(0.8) ? rng_.below(12) : rng_.below(32));
    if (rng_.chance(0.5)) store.low = 0;
    return store;
  }

  Design design_;
  int64_t dram_;
  Rng& rng_;
};

}  // namespace tilewright::spatial::testing
