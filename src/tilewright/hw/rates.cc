#include "tilewright/hw/rates.h"

#include <algorithm>
#include <cmath>

namespace tilewright::hw {

double Bandwidth::of(int workers) const { return std::min(one * workers, std::max(one, all)); }

double CpuRates::peak(DType dtype) const {
  if (dtype == DType::BF16 && bf16 > 0) return bf16;
  if ((dtype == DType::I8 || dtype == DType::U8) && int8 > 0) return int8;
  return dtype == DType::F64 ? f32 / 2 : f32;
}

double CpuRates::tile_share(DType dtype, int64_t rows, int64_t columns) const {
  double share = 1, least = INFINITY;
  for (const TileRate& tile : tiles) {
    const double distance = std::abs(static_cast<double>(tile.rows - rows)) +
                            2 * std::abs(static_cast<double>(tile.columns - columns));
    if (tile.dtype == dtype && distance < least) least = distance, share = tile.share;
  }
  return share;
}

CpuRates assumed_rates(int vector_bytes, int cores) {
  constexpr double kGhz = 3.5;
  const double width = vector_bytes, workers = std::max(cores, 1);
  CpuRates rates;
  rates.f32 = kGhz * 2 * 2 * width / 4;  // two multiply-adds per cycle
  rates.l1 = {kGhz * 1.5 * width, kGhz * 1.5 * width * workers};
  rates.l2 = {kGhz * 0.75 * width, kGhz * 0.75 * width * workers};
  rates.l3 = {kGhz * 0.4 * width, kGhz * 0.4 * width * workers};
  rates.dram = {30, 30 * std::min(workers, 2.0)};
  rates.fork_join_ns = 400;
  return rates;
}

CpuRates best_of(const CpuRates& a, const CpuRates& b) {
  CpuRates best = a;
  best.readings = a.readings + b.readings;
  for (double CpuRates::* peak : {&CpuRates::f32, &CpuRates::bf16, &CpuRates::int8})
    best.*peak = std::max(a.*peak, b.*peak);
  for (Bandwidth CpuRates::* level : {&CpuRates::l1, &CpuRates::l2, &CpuRates::l3, &CpuRates::dram})
    best.*level = {std::max((a.*level).one, (b.*level).one),
                   std::max((a.*level).all, (b.*level).all)};
  best.fork_join_ns = std::min(a.fork_join_ns, b.fork_join_ns);
  for (const TileRate& tile : b.tiles) {
    const auto same = std::find_if(best.tiles.begin(), best.tiles.end(), [&](const TileRate& t) {
      return t.dtype == tile.dtype && t.rows == tile.rows && t.columns == tile.columns;
    });
    if (same == best.tiles.end())
      best.tiles.push_back(tile);
    else
      same->share = std::max(same->share, tile.share);
  }
  return best;
}

}  // namespace tilewright::hw
