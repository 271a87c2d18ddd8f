// The rates of this machine, in an order that lets them check each other:
//
//   peaks and clock -> fork and join -> L1, L2, L3, DRAM -> register tiles -> peaks and clock again
//
// Two rounds of peaks that differ by more than 10 % ask for a third, of which the median counts. A
// contradiction (L3 faster than L2, a peak above what the clock allows) is measured again, up to
// three times and seven seconds; what still contradicts is given up, and a typical value is put in
// its place.
#include "tilewright/measure/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/measure/probes.h"

namespace tilewright::measure {
namespace {

constexpr double kSeconds = 0.2;    ///< of one reading on a quiet machine
constexpr int kMemoryReadings = 3;  ///< to read memory without a contradiction
/// By the clock since the beginning: no more attempts at memory, no more tiles.
constexpr double kMemoryEnd = 7, kTilesEnd = 14;
/// Of the peak, on the best register tile of an undisturbed core. source: 0.98 to 1 on Zen 4 and
/// Sapphire Rapids; 0.88 in a disturbed calibration of the latter.
constexpr double kGoodTile = 0.95;

struct Level {
  const char* part;
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
  return {{"l1", "L1", &hw::CpuRates::l1, target.l1_bytes / 2, target.l1_bytes / 2},
          {"l2", "L2", &hw::CpuRates::l2, target.l2_bytes / 2, target.l2_bytes / 2},
          {"l3", "L3", &hw::CpuRates::l3, beyond_l2(l3 / 4), beyond_l2(l3 / 2 / cores)},
          {"dram", "DRAM", &hw::CpuRates::dram, far, std::max(far / cores, int64_t{8} << 20)}};
}

/// All peaks and the clock, one after the other.
struct Round {
  BurstReading f32, bf16, int8, clock;
};

class Calibration {
 public:
  Calibration(const hw::CpuTarget& target, const Probes& probes, const CalibrateProgress& progress)
      : target_(target), probes_(probes), progress_(progress), start_(probes.now()) {}

  Result<hw::CpuRates> run() {
    const std::vector<Level> memory = levels(target_);
    total_ = static_cast<int>(memory.size() + probes_.tiles.size()) + 2;
    TW_TRY_STATUS(step("arithmetic"));
    rounds_.push_back(read_round());
    TW_TRY_STATUS(step("threads"));
    read_threads();
    for (const Level& level : memory) {
      TW_TRY_STATUS(step(level.name));
      read_level(level);
    }
    read_contradictory(memory);
    TW_TRY_STATUS(read_tiles());
    rounds_.push_back(read_round());  // by now the clock has settled
    settle_peaks();
    give_up_contradictions();
    rates_.measured = !has_assumed("f32");
    hw::fill_assumed(rates_, target_.vector_bytes, target_.cores);
    rates_.about.seconds = elapsed();
    return std::move(rates_);
  }

 private:
  double elapsed() const { return probes_.now() - start_; }
  Status step(const std::string& what) {
    return progress_ ? progress_(std::min(done_++, total_), total_, what) : Status{};
  }
  bool has_assumed(const std::string& part) const {
    return std::find(rates_.assumed.begin(), rates_.assumed.end(), part) != rates_.assumed.end();
  }
  void assume(const std::string& part) {
    if (!has_assumed(part)) rates_.assumed.push_back(part);
  }
  hw::Contradiction contradiction() const {
    return hw::contradiction(rates_, target_.vector_bytes, target_.cores, most_fma_per_cycle());
  }

  /// Types that the code generator has no instruction for stay unread.
  Round read_round() const {
    const auto dot = [&](DType a, DType b) {
      return hw::find_dot(target_, a, b) ? probes_.peak(b) : BurstReading{};
    };
    return {probes_.peak(DType::F32), dot(DType::BF16, DType::BF16), dot(DType::U8, DType::I8),
            probes_.clock()};
  }

  void read_threads() {
    if (target_.cores < 2) return;
    const BurstReading loops = probes_.fork_join();
    if (loops.busy()) return assume("fork_join");
    rates_.fork_join_ns = 1 / loops.rate;
  }

  /// Keeps the best of what was read before and now: by the wall clock nothing reads too fast.
  void read_level(const Level& level) {
    hw::Bandwidth& rate = rates_.*level.rate;
    const double one = probes_.memory(1, level.one).rate;
    const double all =
        target_.cores > 1 && one > 0 ? probes_.memory(target_.cores, level.all).rate : one;
    rate = {std::max(rate.one, one), std::max(rate.all, all)};
    if (rate.one <= 0 || rate.all <= 0) assume(level.part);
  }

  /// Reads levels that contradict each other again, then gives them up.
  void read_contradictory(const std::vector<Level>& memory) {
    rates_.assumed.push_back("f32");  // not settled yet
    for (int attempt = 0; attempt < kMemoryReadings && !contradiction().text.empty(); ++attempt)
      for (const Level& level : memory)
        if (!has_assumed(level.part) && elapsed() < kMemoryEnd) read_level(level);
    for (hw::Contradiction found = contradiction(); !found.text.empty(); found = contradiction()) {
      assume(found.part);
      for (const Level& level : memory)
        if (level.part == found.part) rates_.*level.rate = {};  // of no use at all
    }
    std::erase(rates_.assumed, "f32");
  }

  Status read_tiles() {
    for (const ProbeTile& tile : probes_.tiles) {
      TW_TRY_STATUS(step(fmt::format("{} tile {}x{}", name(tile.dtype), tile.rows, tile.columns)));
      if (elapsed() > kTilesEnd) continue;
      const TileReading reading = TW_TRY(probes_.tile(tile));
      if (reading.share > 0 && reading.share <= hw::kMostShare)
        rates_.tiles.push_back({tile.dtype, tile.rows, tile.columns, reading.share, reading.rate});
    }
    if (rates_.tiles.empty() && !probes_.tiles.empty()) assume("tiles");
    return {};
  }

  /// Each peak from the first two rounds, or with a third; all of them from a third where they
  /// contradict the clock, each other or the tiles.
  void settle_peaks() {
    const auto third = [&]() -> const Round& {
      if (rounds_.size() < 3) rounds_.push_back(read_round());
      return rounds_[2];
    };
    const auto settle = [&](BurstReading Round::* peak) {
      return settled((rounds_[0].*peak).rate, (rounds_[1].*peak).rate,
                     [&] { return (third().*peak).rate; });
    };
    const auto settle_all = [&] {
      rates_.f32 = settle(&Round::f32);
      // Without bursts there is no such instruction, and no reason to read again.
      rates_.bf16 = rounds_[0].bf16.all > 0 ? settle(&Round::bf16) : 0;
      rates_.int8 = rounds_[0].int8.all > 0 ? settle(&Round::int8) : 0;
    };
    for (const Round& round : rounds_) rates_.ghz = std::max(rates_.ghz, round.clock.rate);
    settle_all();
    if (rates_.f32 > 0 && contradiction().part == "f32") {
      third();
      std::rotate(rounds_.begin(), rounds_.begin() + 1, rounds_.end());
      settle_all();
    }
    if (rates_.f32 <= 0) assume("f32");
    if (rates_.bf16 <= 0 && rounds_[0].bf16.all > 0) assume("bf16");
    if (rates_.int8 <= 0 && rounds_[0].int8.all > 0) assume("int8");
    const BurstReading& last = rounds_.back().f32;
    rates_.about.spread = last.spread;
    for (const Round& round : rounds_) {
      rates_.about.kept += round.f32.kept;
      rates_.about.bursts += round.f32.all;
    }
  }

  /// What still contradicts itself is not kept.
  void give_up_contradictions() {
    for (hw::Contradiction found = contradiction(); !found.text.empty(); found = contradiction()) {
      assume(found.part);
      if (found.part == "f32") assume("bf16"), assume("int8");
    }
  }

  const hw::CpuTarget& target_;
  const Probes& probes_;
  const CalibrateProgress& progress_;
  const double start_;
  int done_ = 0, total_ = 0;
  std::vector<Round> rounds_;
  hw::CpuRates rates_;
};

}  // namespace

Probes system_probes(const hw::CpuTarget& target, const CompileKernel& compile) {
  const auto pool =
      std::make_shared<runtime::ThreadPool>(runtime::ThreadPoolOptions{.threads = target.cores});
  Probes probes;
  probes.peak = [](DType dtype) { return read_peak(dtype, kSeconds); };
  probes.clock = [] { return read_clock(kSeconds / 4); };
  probes.fork_join = [pool] { return read_fork_join(*pool, kSeconds); };
  probes.memory = [pool](int cores, int64_t bytes) {
    return read_memory(*pool, cores, bytes, kSeconds);
  };
  probes.now = system_clocks().wall;
  if (!compile) return probes;
  probes.tiles = legal_tiles(target);
  probes.tile = [target, compile](const ProbeTile& tile) {
    return read_tile(tile, target, compile);
  };
  return probes;
}

Result<hw::CpuRates> calibrate(const hw::CpuTarget& target, const Probes& probes,
                               const CalibrateProgress& progress) {
  return Calibration(target, probes, progress).run();
}

std::string disturbed(const hw::CpuRates& rates) {
  double best = 0;
  for (const hw::TileRate& tile : rates.tiles)
    if (tile.dtype == DType::F32) best = std::max(best, tile.share);
  if (best == 0 || best >= kGoodTile) return "";
  return fmt::format("the best register tile reached {:.0f} % of the peak", 100 * best);
}

}  // namespace tilewright::measure
