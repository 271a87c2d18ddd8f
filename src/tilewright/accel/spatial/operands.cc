#include "tilewright/accel/spatial/operands.h"

#include <algorithm>
#include <bit>

#include "tilewright/accel/spatial/needs.h"

namespace tilewright::spatial {
namespace {

/// The axes of a transfer inside and outside of its runs; `there(axis)`: positions in DRAM.
template <class Axes, class There>
Runs runs_of(uint64_t dram, const Axes& axes, int run_axes, int64_t element, const There& there) {
  Runs out{{static_cast<int64_t>(dram), {}}, static_cast<uint64_t>(element)};
  for (int a = 0; a < kAxes; ++a) {
    const auto& axis = axes[static_cast<size_t>(a)];
    if (a >= kAxes - run_axes)
      out.bytes *= there(axis);
    else
      out.begins.dims.push_back({there(axis), axis.dram_step});
  }
  if (out.begins.empty()) out.bytes = 0;
  return out;
}

/// An axis whose positions go to blocks of `lanes`: a box for the whole blocks, one for what is
/// left; `outer` and `inner` are the steps from block to block and in one.
std::vector<Box> in_blocks(const Box& box, uint64_t count, uint64_t lanes, int64_t outer,
                           int64_t inner) {
  const uint64_t whole = count / lanes, rest = count % lanes;
  std::vector<Box> out;
  if (whole > 0) {
    out.push_back(box);
    out.back().dims.insert(out.back().dims.end(), {{whole, outer}, {lanes, inner}});
  }
  if (rest > 0) {
    out.push_back(box);
    out.back().begin += static_cast<int64_t>(whole) * outer;
    out.back().dims.push_back({rest, inner});
  }
  return out;
}

struct RoleWidth {
  Lanes lanes;
  int64_t width;
  int64_t RoleLanes::* member;
};
std::array<RoleWidth, 3> roles(const Design& design, const Compute& compute) {
  const RoleLanes all = all_lanes(design);
  return {{{compute.i, all.i, &RoleLanes::i},
           {compute.j, all.j, &RoleLanes::j},
           {compute.k, all.k, &RoleLanes::k}}};
}

}  // namespace

RoleLanes all_lanes(const Design& design) {
  const int64_t rows = design.rows, cols = design.cols;
  switch (design.unit) {
    case Unit::Dot:
      return {1, 1, rows * cols};
    case Unit::Gemv:
      return {rows * cols, 1, 1};
    case Unit::Gemm:
      if (design.dataflow == Dataflow::OutputStationary) return {rows, cols, 1};
      return {1, cols, rows};
    case Unit::Conv2d:
      return {1, rows, cols};
  }
  return {};
}

std::array<int64_t, 2> row_lanes(const Design& design, const RoleLanes& lanes) {
  if (weights_stay(design)) return {lanes.k, 0};
  if (design.unit == Unit::Dot) return {lanes.k, lanes.k};
  return {lanes.i, lanes.j};  // one element, j = 1, of a Gemv
}

int fill_cycles(const Design& design) {
  return design.links == Links::Systolic ? design.rows + design.cols - 2
                                         : int(std::bit_width(uint64_t(design.units() - 1)));
}

uint32_t row_fetches(const Design& design, int factor) {
  if (design.links != Links::None) return 1;
  if (design.unit == Unit::Gemv) return factor == 0 ? 1 : uint32_t(design.units());
  if (design.unit == Unit::Conv2d) return uint32_t(design.rows);
  return uint32_t(factor == 0 ? design.cols : design.rows);
}

int64_t sum_words(const Design& design) { return design.local_bytes() / (4 * sum_parts(design)); }

int64_t taps(const Compute& compute) {
  int64_t count = 1;
  for (int l = kLoops - compute.tap_loops; l < kLoops; ++l)
    count *= compute.loops[static_cast<size_t>(l)].count;
  return count;
}

int64_t sum_limit(const Design& design, const Compute& compute) {
  const int64_t left = design.local_bytes() - block_bytes(design) * taps(compute);
  return left < 0 ? 0 : left / (4 * sum_parts(design));
}

bool Box::empty() const {
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.count == 0; });
}

int64_t Box::first() const {
  int64_t at = begin;
  for (const Dim& dim : dims)
    at += std::min<int64_t>(0, static_cast<int64_t>(dim.count - 1) * dim.step);
  return at;
}

int64_t Box::last() const {
  int64_t at = begin;
  for (const Dim& dim : dims)
    at += std::max<int64_t>(0, static_cast<int64_t>(dim.count - 1) * dim.step);
  return at;
}

uint64_t Runs::count() const {
  uint64_t count = bytes == 0 ? 0 : 1;
  for (const Dim& dim : begins.dims) count *= dim.count;
  return count;
}

Runs runs(const Load& load) {
  Runs out = runs_of(load.dram, load.axes, load.run_axes, 1,
                     [](const LoadAxis& axis) { return uint64_t{axis.there()}; });
  if (out.bytes == 0) return out;
  out.begins.begin -= 4 * int64_t{load.bias_words};
  out.bytes += 4 * uint64_t{load.bias_words};
  return out;
}

Runs runs(const Store& store) {
  return runs_of(store.dram, store.axes, store.run_axes, stored_bytes(store),
                 [](const StoreAxis& axis) { return uint64_t{axis.count}; });
}

uint64_t box_bytes(const Load& load) {
  uint64_t bytes = 1;
  for (const LoadAxis& axis : load.axes) bytes *= axis.count;
  return bytes;
}

std::vector<Box> loaded(const Load& load) {
  Box box{load.spad, {}};
  for (int a = 0; a < kAxes; ++a) {
    const LoadAxis& axis = load.axes[static_cast<size_t>(a)];
    if (a != load.lane_axis) box.dims.push_back({axis.count, axis.spad_step});
  }
  if (load.lane_axis < 0) return {box};
  const LoadAxis& axis = load.axes[static_cast<size_t>(load.lane_axis)];
  return in_blocks(box, axis.count, load.lanes, load.lane_pitch, axis.spad_step);
}

uint64_t Share::steps() const {
  uint64_t steps = 1;
  for (const uint32_t n : count) steps *= n;
  return steps;
}

std::vector<Share> shares(const Design& design, const Compute& compute) {
  const auto all = roles(design, compute);
  std::vector<Share> out(1);
  for (size_t l = 0; l < kLoops; ++l) out[0].count[l] = compute.loops[l].count;
  // Only the last block of a role can lack lanes.
  for (size_t l = 0; l < kLoops; ++l) {
    const uint32_t count = compute.loops[l].count;
    const bool ragged = std::any_of(all.begin(), all.end(), [&](const RoleWidth& role) {
      return role.lanes.loop == static_cast<int>(l) && role.lanes.count < count * role.width;
    });
    if (!ragged || count < 2) continue;
    const size_t before = out.size();
    for (size_t s = 0; s < before; ++s) {
      Share last = out[s];
      last.first[l] = count - 1;
      last.count[l] = 1;
      out[s].count[l] = count - 1;
      out.push_back(last);
    }
  }
  for (Share& share : out)
    for (const RoleWidth& role : all) {
      const int64_t block =
          role.lanes.loop < 0 ? 0 : share.first[static_cast<size_t>(role.lanes.loop)];
      share.lanes.*role.member =
          std::clamp<int64_t>(role.lanes.count - block * role.width, 0, role.width);
    }
  return out;
}

Box read_of(const Design& design, const Compute& compute, const Share& share, int factor) {
  const auto f = static_cast<size_t>(factor);
  Box box{compute.spad[f], {}};
  for (size_t l = 0; l < kLoops; ++l) {
    const int64_t step = compute.loops[l].spad_step[f];
    box.begin += share.first[l] * step;
    if (step != 0) box.dims.push_back({share.count[l], step});
  }
  const auto lanes = [](int64_t count, int64_t step) {
    return Dim{static_cast<uint64_t>(count), step};
  };
  if (factor == 0 || !weights_stay(design)) {
    box.dims.push_back(lanes(row_lanes(design, share.lanes)[f], 1));
    return box;
  }
  const bool conv = design.unit == Unit::Conv2d;
  box.dims.push_back(lanes(conv ? share.lanes.j : share.lanes.k, compute.row_step));
  box.dims.push_back(lanes(conv ? share.lanes.k : share.lanes.j, 1));
  return box;
}

Box sums_of(const Design& design, const Compute& compute, const Share& share) {
  const int64_t parts = sum_parts(design);
  Box box{compute.sum * parts, {}};
  for (size_t l = 0; l < kLoops; ++l) {
    const int64_t step = compute.loops[l].sum_step * parts;
    box.begin += share.first[l] * step;
    if (step != 0) box.dims.push_back({share.count[l], step});
  }
  const bool both = design.unit == Unit::Gemm && !weights_stay(design);
  box.dims.push_back({static_cast<uint64_t>(share.lanes.i), both ? design.cols : 1});
  box.dims.push_back({static_cast<uint64_t>(share.lanes.j), 1});
  return box;
}

std::vector<Box> sums_of(const Design& design, const Store& store) {
  const int64_t parts = sum_parts(design);
  std::vector<Box> out = {{store.sum * parts, {}}};
  for (const StoreAxis& axis : store.axes) {
    std::vector<Box> next;
    for (const Box& box : out)
      for (Box& piece :
           in_blocks(box, axis.count, axis.lanes, axis.sum_step * parts, axis.part_step))
        next.push_back(std::move(piece));
    out = std::move(next);
  }
  return out;
}

}  // namespace tilewright::spatial
