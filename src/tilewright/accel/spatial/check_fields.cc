// What a design can do with an instruction by itself.
#include <fmt/format.h>

#include <type_traits>

#include "tilewright/accel/common/image.h"
#include "tilewright/accel/spatial/isa.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"
#include "tilewright/accel/spatial/program.h"

namespace tilewright::spatial {
namespace {

constexpr uint64_t kMostSteps = uint64_t{1} << 32;

class FieldChecker {
 public:
  explicit FieldChecker(const Design& design) : design_(design) {}

  Status check(const Insn& insn) {
    const unsigned own = ~((1u << kQueues) - 1) | 1u << static_cast<int>(insn.queue());
    if (((insn.takes | insn.gives) & own) != 0)
      add("tokens of its own queue, or of one that is not there");
    std::visit([&](const auto& work) { check_work(work); }, insn.work);
    return std::move(problems_).status();
  }

 private:
  void add(std::string what) { problems_.add(std::move(what)); }

  void in_range(std::string_view what, int64_t value, int64_t low, int64_t high) {
    if (value < low || value > high)
      add(fmt::format("{} is {}, but must be in {}..{}", what, value, low, high));
  }
  /// That [first, last] lies in a memory of `size` places.
  void inside(std::string_view what, int64_t first, int64_t last, int64_t size) {
    if (first < 0 || last >= size)
      add(fmt::format("{} {}..{}, but there are {}", what, first, last, size));
  }
  void inside(std::string_view what, const Box& box, int64_t size) {
    if (!box.empty()) inside(what, box.first(), box.last(), size);
  }

  /// Whether each axis has positions, and not more than `most` together: then places are sums that
  /// fit 64 bits.
  template <class Axes>
  bool check_counts(const Axes& axes, int64_t most, std::string_view of) {
    int64_t all = 1;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (axes[a].count == 0) {
        add(fmt::format("axis {} has no positions", a));
        return false;
      }
      all *= axes[a].count;
      if (all <= most) continue;
      add(fmt::format("the axes have more positions than the {} {}", most, of));
      return false;
    }
    return true;
  }

  /// That the last axes follow each other in DRAM. `bytes(axis)`: that are there of one of them,
  /// times `element` for the last.
  template <class Axes, class There>
  void check_runs(const Axes& axes, int run_axes, int64_t element, const There& there) {
    in_range("run_axes", run_axes, 1, kAxes);
    if (axes.back().dram_step != element)
      add(fmt::format("the last axis steps {} bytes in DRAM, but must step {}",
                      axes.back().dram_step, element));
    if (run_axes < 1 || run_axes > kAxes) return;
    int64_t bytes = element;
    for (int a = kAxes - 1; a >= kAxes - run_axes; --a) {
      const auto& axis = axes[static_cast<size_t>(a)];
      if (there(axis) > 1 && axis.dram_step != bytes)
        add(fmt::format("axis {} of a run steps {} bytes in DRAM, but the next ones have {}", a,
                        axis.dram_step, bytes));
      bytes *= there(axis);
    }
  }

  bool check_address(uint64_t dram) {
    if (dram >= kDramBytes) add(fmt::format("byte {} is beyond DRAM", dram));
    return dram < kDramBytes;
  }

  void check_dram(const Runs& runs) {
    if (runs.bytes == 0) return;
    inside("bytes of DRAM", runs.begins.first(),
           runs.begins.last() + static_cast<int64_t>(runs.bytes) - 1, int64_t{kDramBytes});
  }

  void check_work(const Load& load) {
    for (size_t a = 0; a < kAxes; ++a) {
      const LoadAxis& axis = load.axes[a];
      if (uint32_t{axis.before} + axis.after > axis.count)
        return add(fmt::format("axis {} has {} + {} zeros in {} positions", a, axis.before,
                               axis.after, axis.count));
    }
    if (!check_address(load.dram)) return;
    if (!check_counts(load.axes, design_.spad_bytes(), "bytes of the scratchpad")) return;
    in_range("lane_axis", load.lane_axis, -1, kAxes - 1);
    in_range("lanes", load.lanes, 1, 65535);
    const Runs all = runs(load);
    if (all.bytes > 0)
      check_runs(load.axes, load.run_axes, 1,
                 [](const LoadAxis& axis) { return int64_t{axis.there()}; });
    else
      in_range("run_axes", load.run_axes, 1, kAxes);
    if (load.bias_words > 0 && (load.run_axes != kAxes || all.bytes == 0))
      add("bias stands before one run of all axes, but there is none");
    if (load.bias_words > 0)
      inside("words of bias", load.bias, load.bias + load.bias_words - 1, kBiasWords);
    if (!problems_.empty()) return;
    check_dram(all);
    for (const Box& box : loaded(load))
      inside("bytes of the scratchpad", box, design_.spad_bytes());
  }

  void check_lanes(const Compute& compute, std::string_view role, const Lanes& lanes, int64_t width,
                   bool of_block) {
    in_range(fmt::format("the loop of lanes {}", role), lanes.loop, -1, kLoops - 1);
    if (lanes.loop < -1 || lanes.loop >= kLoops) return;
    const int64_t blocks =
        lanes.loop < 0 ? 1 : compute.loops[static_cast<size_t>(lanes.loop)].count;
    const int64_t most = lanes.loop < 0 ? width : 65535;
    in_range(fmt::format("the count of lanes {}", role), lanes.count, (blocks - 1) * width + 1,
             most);
    if (width == 1 && lanes.loop >= 0)
      add(fmt::format("role {} has no lanes in this unit, so no loop goes through them", role));
    if (of_block && lanes.loop >= compute.block_loops)
      add(fmt::format("lanes {} of the weights change with loop {}, which chooses no block", role,
                      lanes.loop));
  }

  void check_loops(const Compute& compute) {
    const bool stays = weights_stay(design_);
    const int blocks = compute.block_loops, tap_loops = compute.tap_loops;
    uint64_t steps = 1;
    for (size_t l = 0; l < kLoops; ++l) {
      const ComputeLoop& loop = compute.loops[l];
      if (loop.count == 0) return add(fmt::format("loop {} has no steps", l));
      steps *= loop.count;
      if (steps >= kMostSteps) return add("there are 2^32 steps or more");
    }
    if (blocks > 0 && !stays) add("no blocks of weights stay in this unit");
    if (tap_loops > 0 && design_.unit != Unit::Conv2d) add("no other unit than conv2d has taps");
    if (blocks + tap_loops > kLoops)
      return add(fmt::format("{} + {} loops choose blocks and taps, but there are {}", blocks,
                             tap_loops, kLoops));
    for (int l = blocks; stays && l < kLoops - tap_loops; ++l)
      if (compute.loops[static_cast<size_t>(l)].spad_step[1] != 0)
        add(fmt::format("loop {} moves the weights, but chooses neither block nor tap", l));
  }

  void check_work(const Compute& compute) {
    const bool stays = weights_stay(design_);
    const RoleLanes all = all_lanes(design_);
    check_loops(compute);
    check_lanes(compute, "i", compute.i, all.i, false);
    check_lanes(compute, "j", compute.j, all.j, stays);
    check_lanes(compute, "k", compute.k, all.k, stays);
    if (!problems_.empty()) return;
    int64_t last = compute.sum;
    for (const ComputeLoop& loop : compute.loops) last += (loop.count - 1) * int64_t{loop.sum_step};
    inside("sums of a part", compute.sum, last, sum_limit(design_, compute));
    for (const Share& share : shares(design_, compute))
      for (const int factor : {0, 1})
        inside(fmt::format("factor {} lies in bytes of the scratchpad", factor),
               read_of(design_, compute, share, factor), design_.spad_bytes());
  }

  void check_work(const Store& store) {
    if (!check_address(store.dram)) return;
    const int64_t parts = sum_parts(design_);
    if (!check_counts(store.axes, parts * sum_words(design_), "sums")) return;
    for (size_t a = 0; a < kAxes; ++a)
      in_range(fmt::format("lanes of axis {}", a), store.axes[a].lanes, 1, 65535);
    in_range("shift", store.shift, 0, 31);
    in_range("bias_axis", store.bias_axis, -1, kAxes - 1);
    if (store.low > store.high) add(fmt::format("clips to {}..{}", store.low, store.high));
    check_runs(store.axes, store.run_axes, stored_bytes(store),
               [](const StoreAxis& axis) { return int64_t{axis.count}; });
    if (!problems_.empty()) return;
    int64_t part = 0, sum = store.sum;
    for (const StoreAxis& axis : store.axes) {
      part += (std::min<int64_t>(axis.count, axis.lanes) - 1) * axis.part_step;
      sum += (axis.count - 1) / axis.lanes * int64_t{axis.sum_step};
    }
    inside("parts of the private memory", 0, part, parts);
    inside("sums of a part", store.sum, sum, sum_words(design_));
    if (store.bias_axis >= 0)
      inside("words of bias", store.bias,
             int64_t{store.bias} + store.axes[static_cast<size_t>(store.bias_axis)].count - 1,
             kBiasWords);
    check_dram(runs(store));
  }

  const Design& design_;
  accel::Problems problems_;
};

}  // namespace

Status check_fields(const Design& design, const Insn& insn) {
  return FieldChecker(design).check(insn);
}

}  // namespace tilewright::spatial
