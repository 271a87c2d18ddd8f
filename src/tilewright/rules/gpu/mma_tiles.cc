// Tiles of products on matrix instructions, compared by how long they take.
//
// For each shape of a table (128 x 128 of a block, 64 x 32 of a warp, ...): how many blocks fit a
// unit at once, so how many waves there are; a wave takes as long as the slowest of tensor units,
// shared memory, L2, gathering and latency, plus some of the others. Each shape is also tried
// with its terms shared by several blocks, plus the time to add their parts up.
#include <algorithm>
#include <cmath>

#include "tilewright/base/integers.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/rules/gpu/mma.h"

namespace tilewright::rules {
namespace {

/// A tile of a block, and what a warp (or group) has of it.
struct Shape {
  int64_t block_m, block_n, warp_m, warp_n;
};
constexpr Shape kShapes[] = {
    {128, 256, 64, 64}, {256, 128, 64, 64}, {128, 128, 64, 64}, {128, 128, 64, 32},
    {64, 256, 64, 64},  {256, 64, 64, 64},  {128, 64, 64, 32},  {64, 128, 32, 64},
    {64, 64, 32, 32},   {32, 256, 32, 64},  {256, 32, 64, 32},  {32, 128, 32, 32},
    {128, 32, 32, 32},  {32, 64, 16, 32},   {64, 32, 32, 16},   {16, 128, 16, 32},
    {128, 16, 32, 16},  {32, 32, 16, 16},   {16, 64, 16, 16},   {64, 16, 16, 16},
    {16, 32, 16, 16},   {32, 16, 16, 16},   {16, 16, 16, 16},
};
constexpr Shape kGroupShapes[] = {{128, 256, 64, 256}, {128, 128, 64, 128}, {64, 256, 64, 256},
                                  {64, 128, 64, 128},  {128, 64, 64, 64},   {64, 64, 64, 64}};

/// Rounds in shared memory, where the target has as much.
constexpr int64_t kDepth = 4;
/// Tiles below each other that come before the next ones beside them, at most.
constexpr int64_t kRaster = 8;

// Fitted to the times of 1 100 tiles of five products of bf16 on an H100 (2026-11-26), root mean
// square of the logarithm of model / time: 0.23.
/// Of what tensor units of sm_90 can do, what instructions of single warps reach.
constexpr double kWarpShare = 0.49;
/// Latency of a copy beside many others, in latencies of a single load.
constexpr double kBesideOthers = 2.45;
/// What does not hide behind the longest of several times.
constexpr double kNotHidden = 0.45;
/// What it takes beside the rounds to fetch the first factors and to write the results. units: ns.
constexpr double kBeginAndEnd = 4500;

/// Warps that keep the tensor units of a multiprocessor busy.
constexpr double kBusyWarps = 8;
/// Instructions of a thread for an element that is gathered: its place, conditions, load, packing;
/// counted in machine code. Where conditions hold for 16 bytes of them, it takes fewer.
constexpr double kGathering = 30, kFromWindow = 5;
/// Lanes that a multiprocessor issues for per clock; bytes that its shared memory moves.
constexpr double kLanes = 128, kSharedBytes = 128;
/// Registers of a thread beside results and fragments.
constexpr int64_t kOtherRegisters = 48;
/// Shared memory that the system takes of each block.
constexpr int64_t kReserved = 1024;
/// Blocks that share the terms of a tile, at most, and rounds that each has at least.
constexpr int64_t kMostSplits = 64, kLeastRounds = 2;
/// Share of the time of one product that two may take.
constexpr double kWorthwhile = 0.95;

int64_t threads_of(const GpuMma& mma) {
  return mma.warps() * (mma.groups ? hw::kGroupLanes : hw::kWarpLanes);
}

int64_t round_bytes(const GpuMma& mma) {
  const int64_t row = mma.block_k * mma.bytes + (mma.groups ? 0 : kMmaRowBytes);
  return (mma.block_m + mma.block_n) * row;
}

/// Blocks that a unit holds at a time; 0: not even one.
int64_t resident_blocks(const GpuMma& mma, const hw::GpuTarget& target) {
  const int64_t threads = threads_of(mma), shared = mma.depth * round_bytes(mma);
  const int64_t lanes = mma.groups ? hw::kGroupLanes : hw::kWarpLanes;
  const int64_t fragments =
      mma.groups ? 0 : (mma.warp_m + mma.warp_n) * mma.terms() * mma.bytes / 4 / lanes;
  const int64_t registers = mma.warp_m * mma.warp_n / lanes + fragments + kOtherRegisters;
  if (shared > target.shared_bytes || threads > target.max_threads ||
      registers > target.registers || registers * threads > target.unit_registers)
    return 0;
  return std::min({target.unit_shared_bytes / (shared + kReserved), target.unit_threads / threads,
                   target.unit_registers / (registers * threads), target.unit_blocks});
}

double rate_of(const GpuMma& mma, const hw::GpuTarget& target) {
  const hw::GpuRates& r = target.rates;
  const double rate = mma.bytes == 1 ? r.mma_i8 : mma.bytes == 2 ? r.mma_f16 : r.mma_tf32;
  const bool whole = mma.groups || !target.arch.starts_with("sm_90");
  return (rate > 0 ? rate : r.f32) * (whole ? 1 : kWarpShare);
}

/// What `blocks` of one unit take, with `all` on the device: of each resource, in ns.
double wave_time(const GpuMma& mma, const hw::GpuTarget& target, double blocks, double all) {
  const double terms = static_cast<double>(mma.rounds() * mma.block_k), units = target.units;
  const double bytes = static_cast<double>(mma.bytes);
  const double m = static_cast<double>(mma.block_m), n = static_cast<double>(mma.block_n);
  const double warps = blocks * static_cast<double>(mma.warps()) * (mma.groups ? 4 : 1);
  const double busy = std::min(1.0, warps / kBusyWarps);
  const double compute = blocks * 2 * m * n * terms / (rate_of(mma, target) / units) / busy;
  const double sides =
      mma.groups ? 0 : static_cast<double>(mma.warps() * (mma.warp_m + mma.warp_n));
  const double shared = blocks * (sides + m + n) * terms * bytes / (target.rates.shared / units);
  const double l2 = all * (m + n) * terms * bytes / target.rates.l2;
  const double clock = target.rates.shared / units / kSharedBytes;  // per ns
  double gathered = 0;
  for (const auto& [factor, side] : {std::pair(&mma.a, m), std::pair(&mma.b, n)})
    if (!factor->packed && (!factor->in_order || mma.bytes == 4))
      gathered += blocks * side * terms * (factor->whole_windows ? kFromWindow : kGathering);
  const double gathering = gathered / (kLanes * clock);
  const double rounds = static_cast<double>(mma.rounds());
  const double copy = kBesideOthers * target.rates.latency_ns;
  const double latency =
      rounds * (copy / static_cast<double>(mma.depth) + target.rates.sync_ns) + 2 * copy;
  const double longest = std::max({compute, shared, l2, gathering, latency});
  return longest + kNotHidden * (compute + shared + l2 + gathering + latency - longest);
}

/// What it takes to write the sums of parts and to add them up: the cache holds them, or not.
double adding_time(const GpuMma& mma, const hw::GpuTarget& target) {
  if (mma.splits < 2) return 0;
  const double bytes = 4 * static_cast<double>(mma.splits * mma.extent_batch) *
                       static_cast<double>(mma.extent_m * mma.extent_n);
  const bool cached = bytes < static_cast<double>(target.l2_bytes) / 2;
  return 2 * bytes / (cached ? target.rates.l2 : target.rates.dram) + target.rates.launch_ns +
         kBeginAndEnd;
}

/// Whether each warp of the first block has results to compute; threads of others would have no
/// part in what reads them.
bool fits(int64_t block, int64_t warp, int64_t extent) {
  return block <= ceil_div(extent, warp) * warp && warp <= 2 * extent;
}

/// What follows from a shape: rounds in flight, the order of blocks.
void complete(GpuMma& mma, const Shape& shape, const hw::GpuTarget& target) {
  mma.block_m = shape.block_m, mma.block_n = shape.block_n;
  mma.warp_m = shape.warp_m, mma.warp_n = shape.warp_n;
  mma.raster = mma.extent_n > mma.block_n ? kRaster : 1;
  while (ceil_div(mma.extent_m, mma.block_m) % mma.raster != 0) mma.raster /= 2;
  mma.depth = std::min(kDepth, mma.rounds());
  while (mma.depth > 1 && mma.depth * round_bytes(mma) > target.shared_bytes) --mma.depth;
}

}  // namespace

std::optional<double> mma_time(const GpuMma& mma, const hw::GpuTarget& target) {
  const int64_t resident = resident_blocks(mma, target);
  if (resident < 1) return std::nullopt;
  const int64_t blocks = ceil_div(mma.extent_m, mma.block_m) * ceil_div(mma.extent_n, mma.block_n) *
                         mma.extent_batch * mma.splits;
  const int64_t wave = resident * target.units, waves = blocks / wave, rest = blocks % wave;
  double time = static_cast<double>(waves) *
                wave_time(mma, target, static_cast<double>(resident), static_cast<double>(wave));
  if (rest > 0)
    time += wave_time(mma, target, static_cast<double>(ceil_div(rest, target.units)),
                      static_cast<double>(rest));
  const double elements =
      static_cast<double>(mma.extent_batch) *
      static_cast<double>(mma.extent_m * mma.extent_k + mma.extent_n * mma.extent_k);
  const double dram = elements * static_cast<double>(mma.bytes) / target.rates.dram;
  return std::max(time, dram) + target.rates.launch_ns + kBeginAndEnd + adding_time(mma, target);
}

std::vector<int64_t> GpuMma::split_choices() const {
  std::vector<int64_t> choices = {1};
  for (int64_t s = 2; s <= std::min(kMostSplits, split_extent); ++s)
    if (split_extent % (s * per_row()) == 0 && extent_k / s >= kLeastRounds * block_k)
      choices.push_back(s);
  return choices;
}

std::vector<GpuMma> mma_tiles(const GpuMma& mma, const hw::GpuTarget& target) {
  std::vector<GpuMma> tiles;
  const Shape* begin = mma.groups ? std::begin(kGroupShapes) : std::begin(kShapes);
  const Shape* end = mma.groups ? std::end(kGroupShapes) : std::end(kShapes);
  for (const Shape* shape = begin; shape != end; ++shape) {
    if (!fits(shape->block_m, shape->warp_m, mma.extent_m) ||
        !fits(shape->block_n, shape->warp_n, mma.extent_n))
      continue;
    GpuMma next = mma;
    complete(next, *shape, target);
    if (mma_time(next, target)) tiles.push_back(std::move(next));
  }
  return tiles;
}

int64_t rows_of_whole_waves(const GpuMma& mma, const hw::GpuTarget& target) {
  GpuMma whole = mma;
  if (!choose_mma_tiles(whole, target)) return 0;
  const auto time_of = [&](int64_t rows) {
    GpuMma part = mma;
    part.extent_m = rows;
    return choose_mma_tiles(part, target) ? *mma_time(part, target) : INFINITY;
  };
  double best = kWorthwhile * *mma_time(whole, target);
  int64_t found = 0;
  for (const GpuMma& tile : mma_tiles(mma, target)) {
    const int64_t wave = resident_blocks(tile, target) * target.units,
                  row = ceil_div(mma.extent_n, tile.block_n) * mma.extent_batch,
                  waves = ceil_div(mma.extent_m, tile.block_m) * row / wave;
    for (const int64_t full : {waves, waves - 1}) {
      const int64_t rows = full * wave / row * tile.block_m;
      if (rows < 1 || rows >= mma.extent_m) continue;
      if (const double time = time_of(rows) + time_of(mma.extent_m - rows); time < best)
        best = time, found = rows;
    }
  }
  return found;
}

bool choose_mma_tiles(GpuMma& mma, const hw::GpuTarget& target) {
  double best = INFINITY;
  GpuMma whole = mma;
  whole.splits = 1;
  for (GpuMma& tile : mma_tiles(whole, target))
    for (const int64_t splits : whole.split_choices()) {
      tile.splits = splits;
      tile.depth = std::min(tile.depth, tile.rounds());
      if (const double time = *mma_time(tile, target); time < best) best = time, mma = tile;
    }
  return std::isfinite(best);
}

}  // namespace tilewright::rules
