#include "tilewright/accel/spatial/merge.h"

#include <algorithm>
#include <vector>

namespace tilewright::spatial {
namespace {

template <class Axis>
struct Placed {
  Axis axis;
  bool in_run = false, keeps = false;  ///< keeps: it has a number that the instruction names
};

/// Drops axes of one position, outermost first. The last axis steps 1 element in DRAM.
template <class Axis>
void drop_single(std::vector<Placed<Axis>>& axes) {
  for (size_t a = axes.size(); a-- > 0 && axes.size() > 1;) {
    if (axes[a].axis.count != 1 || axes[a].keeps) continue;
    const bool last = a + 1 == axes.size();
    if (last && axes[a - 1].axis.dram_step != axes[a].axis.dram_step) continue;
    if (last && !axes[a - 1].in_run) continue;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(a));
  }
}

template <class Axis, class Join>
void join_all(std::vector<Placed<Axis>>& axes, const Join& join) {
  for (size_t b = axes.size() - 1; b > 0; --b) {
    const size_t a = b - 1;
    if (axes[a].keeps || axes[b].keeps || axes[a].in_run != axes[b].in_run) continue;
    if (!join(axes[a].axis, axes[b].axis)) continue;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(b));
  }
}

constexpr uint64_t kMostZeros = 65535;

/// `a` becomes an axis of both.
bool join_load(LoadAxis& a, const LoadAxis& b) {
  if (b.before != 0 || b.after != 0) return false;
  const uint64_t most = uint64_t{std::max(a.before, a.after)} * b.count;
  if (a.spad_step != b.spad_step * b.count || most > kMostZeros) return false;
  if (a.there() > 1 && a.dram_step != b.dram_step * int64_t{b.count}) return false;
  a = {a.count * b.count, static_cast<uint16_t>(a.before * b.count),
       static_cast<uint16_t>(a.after * b.count), b.dram_step, b.spad_step};
  return true;
}

bool join_store(StoreAxis& a, const StoreAxis& b) {
  if (a.dram_step != b.dram_step * int64_t{b.count}) return false;
  // Both go through the sums of their parts.
  if (a.lanes != 1 || b.lanes != 1 || a.sum_step != b.sum_step * b.count) return false;
  a = {a.count * b.count, b.dram_step, 1, 0, b.sum_step};
  return true;
}

/// Back into the last places of an instruction; `number`: of the axis that it names.
template <class Axis, class Work>
void place(const std::vector<Placed<Axis>>& axes, Work& work, int8_t& number) {
  const size_t skip = kAxes - axes.size();
  // Axes of one position in front of a run that has all others belong to it.
  const bool one_run =
      std::all_of(axes.begin(), axes.end(), [](const auto& a) { return a.in_run; });
  work.run_axes = static_cast<uint8_t>(one_run ? skip : 0);
  for (size_t a = 0; a < skip; ++a) work.axes[a] = {};
  for (size_t a = 0; a < axes.size(); ++a) {
    work.axes[skip + a] = axes[a].axis;
    work.run_axes = static_cast<uint8_t>(work.run_axes + axes[a].in_run);
    if (axes[a].keeps) number = static_cast<int8_t>(skip + a);
  }
}

template <class Axis, class Work>
std::vector<Placed<Axis>> axes_of(const Work& work, int number) {
  std::vector<Placed<Axis>> axes;
  for (int a = 0; a < kAxes; ++a)
    axes.push_back({work.axes[static_cast<size_t>(a)], a + work.run_axes >= kAxes, a == number});
  return axes;
}

}  // namespace

Load merged(const Load& load) {
  Load out = load;
  const bool lanes =
      load.lane_axis >= 0 && load.axes[static_cast<size_t>(load.lane_axis)].count > load.lanes;
  if (!lanes) out.lane_axis = -1;
  auto axes = axes_of<LoadAxis>(load, out.lane_axis);
  // A position of zeros only says what is not there.
  for (auto& placed : axes)
    if (placed.axis.there() == 0) return load;
  drop_single(axes);
  join_all(axes, join_load);
  place(axes, out, out.lane_axis);
  return out;
}

Store merged(const Store& store) {
  Store out = store;
  auto axes = axes_of<StoreAxis>(store, store.bias_axis);
  drop_single(axes);
  join_all(axes, join_store);
  place(axes, out, out.bias_axis);
  return out;
}

}  // namespace tilewright::spatial
