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
    if (tile.dtype == dtype && distance < least)
      least = distance, share = std::min(1.0, tile.share);
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

}  // namespace tilewright::hw
