// What measured rates can and cannot be, and how two measurements make one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tilewright/hw/rates.h"

namespace tilewright::hw {
namespace {

/// Readings of a quiet machine differ by less.
constexpr double kNoise = 1.15;
/// A peak and a tile's own rate, or two readings of a peak, differ by less.
constexpr double kAgree = 0.10;
constexpr double kMostGhz = 6;

struct Level {
  const char* part;
  const char* name;
  Bandwidth CpuRates::* rate;
};
constexpr Level kLevels[] = {{"l1", "L1", &CpuRates::l1},
                             {"l2", "L2", &CpuRates::l2},
                             {"l3", "L3", &CpuRates::l3},
                             {"dram", "DRAM", &CpuRates::dram}};

struct Peak {
  const char* part;
  double CpuRates::* rate;
};
constexpr Peak kPeaks[] = {
    {"f32", &CpuRates::f32}, {"bf16", &CpuRates::bf16}, {"int8", &CpuRates::int8}};

bool is_assumed(const CpuRates& rates, const std::string& part) {
  return std::find(rates.assumed.begin(), rates.assumed.end(), part) != rates.assumed.end();
}

/// The f32 tile that reaches most; null without tiles.
const TileRate* best_tile(const CpuRates& rates) {
  const TileRate* best = nullptr;
  for (const TileRate& tile : rates.tiles)
    if (tile.dtype == DType::F32 && tile.rate > 0 && (best == nullptr || tile.rate > best->rate))
      best = &tile;
  return best;
}

/// The f32 peak by its tiles: rate / share of the best one; 0 without tiles.
double peak_by_tiles(const CpuRates& rates) {
  const TileRate* best = best_tile(rates);
  return best != nullptr && best->share > 0 ? best->rate / best->share : 0;
}

bool tiles_confirm(const CpuRates& rates) {
  const double peak = peak_by_tiles(rates);
  return peak > 0 && std::abs(rates.f32 - peak) <= kAgree * peak;
}

Contradiction peaks_contradiction(const CpuRates& rates, int vector_bytes, int fma_per_cycle) {
  if (is_assumed(rates, "f32")) return {};
  if (rates.f32 <= 0) return {"f32", "no multiply-adds were counted"};
  if (rates.ghz > kMostGhz) return {"f32", fmt::format("a clock of {:.1f} GHz", rates.ghz)};
  const double lanes = vector_bytes / 4.0;
  const double per_cycle = rates.ghz > 0 ? rates.f32 / (2 * lanes * rates.ghz) : 0;
  if (per_cycle > fma_per_cycle * kNoise)
    return {"f32", fmt::format("f32 peak {:.1f} Gop/s at {:.2f} GHz is {:.1f} multiply-adds per "
                               "cycle; processors start at most {}",
                               rates.f32, rates.ghz, per_cycle, fma_per_cycle)};
  const auto ratio = [&](const char* part, double rate, double least,
                         double most) -> Contradiction {
    if (rate <= 0 || is_assumed(rates, part)) return {};
    if (rate >= least * rates.f32 && rate <= most * rates.f32) return {};
    return {"f32", fmt::format("{} peak {:.1f} Gop/s beside f32 peak {:.1f}: {:.2f} times, and {} "
                               "to {} is possible",
                               part, rate, rates.f32, rate / rates.f32, least, most)};
  };
  if (Contradiction found = ratio("int8", rates.int8, 1, 8); !found.text.empty()) return found;
  return ratio("bf16", rates.bf16, 0.25, 4);
}

Contradiction tiles_contradiction(const CpuRates& rates) {
  if (is_assumed(rates, "f32") || is_assumed(rates, "tiles")) return {};
  const TileRate* best = best_tile(rates);
  if (best == nullptr || tiles_confirm(rates)) return {};
  const bool low = rates.f32 < peak_by_tiles(rates);
  return {"f32", fmt::format("the peak was read too {}: {:.1f} Gop/s, and the register tile {}x{} "
                             "reached {:.1f} at {:.0f} % of the peak of its moment",
                             low ? "low" : "high", rates.f32, best->rows, best->columns, best->rate,
                             100 * best->share)};
}

Contradiction memory_contradiction(const CpuRates& rates, int cores) {
  const Level* nearer = nullptr;
  for (const Level& level : kLevels) {
    const Bandwidth& rate = rates.*level.rate;
    if (is_assumed(rates, level.part)) continue;
    if (rate.one <= 0) return {level.part, fmt::format("{} was not read", level.name)};
    if (rate.all * kNoise < rate.one || rate.all > rate.one * cores * kNoise)
      return {level.part, fmt::format("{}: one core reads {:.1f} GB/s, {} cores {:.1f} GB/s",
                                      level.name, rate.one, cores, rate.all)};
    // The wall clock makes nothing too fast, so the nearer one is wrong.
    if (nearer != nullptr && rate.one > (rates.*nearer->rate).one * kNoise)
      return {nearer->part,
              fmt::format("{} gives {:.1f} GB/s, {} before it {:.1f} GB/s", level.name, rate.one,
                          nearer->name, (rates.*nearer->rate).one)};
    nearer = &level;
  }
  return {};
}

/// Keeps a typical bandwidth between the measured ones around it.
void fit(CpuRates& rates, size_t level) {
  Bandwidth& rate = rates.*kLevels[level].rate;
  for (size_t farther = std::size(kLevels) - 1; farther > level; --farther)
    if (const Bandwidth& f = rates.*kLevels[farther].rate;
        !is_assumed(rates, kLevels[farther].part))
      rate = {std::max(rate.one, f.one), std::max(rate.all, f.all)};
  for (size_t nearer = 0; nearer < level; ++nearer) {
    const Bandwidth& n = rates.*kLevels[nearer].rate;
    rate = {std::min(rate.one, n.one), std::min(rate.all, n.all)};
  }
}

}  // namespace

Contradiction contradiction(const CpuRates& rates, int vector_bytes, int cores, int fma_per_cycle) {
  Contradiction found = peaks_contradiction(rates, vector_bytes, fma_per_cycle);
  if (found.text.empty()) found = tiles_contradiction(rates);
  if (found.text.empty()) found = memory_contradiction(rates, cores);
  return found;
}

void fill_assumed(CpuRates& rates, int vector_bytes, int cores) {
  const CpuRates typical = assumed_rates(vector_bytes, cores);
  for (const Peak& peak : kPeaks)
    if (is_assumed(rates, peak.part)) rates.*peak.rate = typical.*peak.rate;
  if (is_assumed(rates, "fork_join")) rates.fork_join_ns = typical.fork_join_ns;
  if (is_assumed(rates, "tiles")) rates.tiles.clear();
  for (const Level& level : kLevels) {
    if (!is_assumed(rates, level.part)) continue;
    const Bandwidth& usual = typical.*level.rate;
    Bandwidth& rate = rates.*level.rate;
    // One core may have been measured where there was no moment for all of them.
    rate = rate.one > 0 ? Bandwidth{rate.one, rate.one * usual.all / usual.one} : usual;
  }
  for (size_t level = 0; level < std::size(kLevels); ++level)
    if (is_assumed(rates, kLevels[level].part)) fit(rates, level);
}

CpuRates combined(const CpuRates& older, const CpuRates& newer) {
  CpuRates out = newer;
  out.readings = older.readings + newer.readings;
  const auto lacks = [&](const std::string& part) {
    return is_assumed(newer, part) && !is_assumed(older, part);
  };
  const bool agree = std::abs(older.f32 - newer.f32) <= kAgree * std::max(older.f32, newer.f32);
  const bool older_peaks =
      lacks("f32") || (!is_assumed(newer, "f32") && !is_assumed(older, "f32") && !agree &&
                       tiles_confirm(older) && !tiles_confirm(newer));
  for (const Peak& peak : kPeaks) {
    if (older_peaks)
      out.*peak.rate = older.*peak.rate;
    else if (agree && !is_assumed(older, peak.part) && !is_assumed(newer, peak.part))
      out.*peak.rate = std::max(older.*peak.rate, newer.*peak.rate);
  }
  if (older_peaks) out.ghz = older.ghz;
  if (lacks("tiles") || older_peaks) out.tiles = older.tiles;
  if (lacks("fork_join")) out.fork_join_ns = older.fork_join_ns;
  for (const Level& level : kLevels)
    if (lacks(level.part)) out.*level.rate = older.*level.rate;
  std::erase_if(out.assumed, lacks);
  out.measured = !is_assumed(out, "f32");
  return out;
}

CpuRates scaled(const CpuRates& rates, double factor) {
  CpuRates out = rates;
  for (const Peak& peak : kPeaks) out.*peak.rate *= factor;
  for (TileRate& tile : out.tiles) tile.rate *= factor;
  out.ghz *= factor;
  for (Bandwidth* level : {&out.l1, &out.l2}) *level = {level->one * factor, level->all * factor};
  return out;
}

}  // namespace tilewright::hw
