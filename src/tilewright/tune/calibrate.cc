#include "tilewright/tune/calibrate.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/tune/probes.h"

namespace tilewright::tune {
namespace {

constexpr double kSeconds = 0.2;  ///< of one reading
constexpr int kAttempts = 4;
/// Readings of a quiet machine differ by less.
constexpr double kNoise = 1.15;
/// Of the peak, on the best register tile of an undisturbed core. source: 0.98 to 1 on Zen 4 and
/// Sapphire Rapids; 0.88 in a disturbed calibration of the latter.
constexpr double kGoodTile = 0.95;

struct Level {
  const char* name;
  hw::Bandwidth hw::CpuRates::* rate;
  int64_t one, all;  ///< bytes that one core, and each of all cores, reads
};

/// Working sets that fit one level and not the one before.
std::vector<Level> levels(const hw::CpuTarget& target) {
  const int64_t cores = target.cores;
  const int64_t l3 = std::max(target.l3_bytes, 4 * target.l2_bytes);
  const int64_t far = std::clamp<int64_t>(4 * l3, 64 << 20, 512 << 20);
  const auto beyond_l2 = [&](int64_t bytes) { return std::max(bytes, 2 * target.l2_bytes); };
  return {{"L1", &hw::CpuRates::l1, target.l1_bytes / 2, target.l1_bytes / 2},
          {"L2", &hw::CpuRates::l2, target.l2_bytes / 2, target.l2_bytes / 2},
          {"L3", &hw::CpuRates::l3, beyond_l2(l3 / 4), beyond_l2(l3 / 2 / cores)},
          {"DRAM", &hw::CpuRates::dram, far, std::max(far / cores, int64_t{8} << 20)}};
}

/// Keeps the best of what was read before and now.
void read_memory(hw::CpuRates& rates, const Level& level, runtime::ThreadPool& pool, int cores) {
  hw::Bandwidth& rate = rates.*level.rate;
  rate.one = std::max(rate.one, read_burst(pool, 1, level.one, kSeconds));
  const double all = cores > 1 ? read_burst(pool, cores, level.all, kSeconds) : rate.one;
  rate.all = std::max(rate.all, all);
}

/// 0 where the code generator has no such instruction for the target.
double dot_peak(const hw::CpuTarget& target, DType a, DType b) {
  return hw::find_dot(target, a, b) ? peak_burst(b, kSeconds) : 0;
}

}  // namespace

std::string implausible(const hw::CpuRates& rates, int cores) {
  const std::pair<const char*, hw::Bandwidth> levels[] = {
      {"L1", rates.l1}, {"L2", rates.l2}, {"L3", rates.l3}, {"DRAM", rates.dram}};
  if (rates.f32 <= 0) return "no multiply-adds were counted";
  const hw::Bandwidth* nearer = nullptr;
  for (const auto& [name, rate] : levels) {
    if (rate.one <= 0) return fmt::format("{} was not read", name);
    if (rate.all * kNoise < rate.one || rate.all > rate.one * cores * kNoise)
      return fmt::format("{}: one core reads {:.1f} GB/s, {} cores {:.1f} GB/s", name, rate.one,
                         cores, rate.all);
    if (nearer != nullptr && rate.one > nearer->one * kNoise)
      return fmt::format("{} gives {:.1f} GB/s, the level before it {:.1f} GB/s", name, rate.one,
                         nearer->one);
    nearer = &rate;
  }
  return "";
}

std::string disturbed(const hw::CpuRates& rates) {
  double best = 0;
  for (const hw::TileRate& tile : rates.tiles)
    if (tile.dtype == DType::F32) best = std::max(best, tile.share);
  if (best == 0 || best >= kGoodTile) return "";
  return fmt::format("the best register tile reached {:.0f} % of the peak", 100 * best);
}

Result<hw::CpuRates> calibrate(const hw::CpuTarget& target, const CalibrateOptions& options) {
  const std::vector<TileShape> tiles =
      options.compile ? legal_tiles(target) : std::vector<TileShape>{};
  const std::vector<Level> memory = levels(target);
  const int total = static_cast<int>(memory.size() + tiles.size()) + 2;
  int done = 0;
  const auto step = [&](const std::string& what) {
    return options.progress ? options.progress(std::min(done++, total), total, what) : Status{};
  };
  hw::CpuRates rates;
  rates.measured = true;
  runtime::ThreadPool pool({.threads = target.cores});
  TW_TRY_STATUS(step("arithmetic"));
  const auto read_peaks = [&] {
    rates.f32 = std::max(rates.f32, peak_burst(DType::F32, kSeconds));
    rates.bf16 = std::max(rates.bf16, dot_peak(target, DType::BF16, DType::BF16));
    rates.int8 = std::max(rates.int8, dot_peak(target, DType::U8, DType::I8));
  };
  read_peaks();
  TW_TRY_STATUS(step("threads"));
  rates.fork_join_ns = target.cores > 1 ? fork_join_burst(pool, kSeconds) : 0;
  std::string problem = "not measured";
  for (int attempt = 0; attempt < kAttempts && !problem.empty(); ++attempt) {
    for (const Level& level : memory) {
      if (attempt == 0) TW_TRY_STATUS(step(level.name));
      read_memory(rates, level, pool, target.cores);
    }
    problem = implausible(rates, target.cores);
  }
  if (!problem.empty())
    return fail(ErrorKind::Limit, "this machine could not be measured", problem,
                "end other programs, then tilewright calibrate --force");
  for (const TileShape& tile : tiles) {
    TW_TRY_STATUS(step(fmt::format("{} tile {}x{}", name(tile.dtype), tile.rows, tile.columns)));
    const double share = TW_TRY(tile_share(tile, target, options.compile));
    rates.tiles.push_back({tile.dtype, tile.rows, tile.columns, share});
  }
  read_peaks();  // by now the clock has settled
  return rates;
}

}  // namespace tilewright::tune
