// How fast a CPU is: the numbers of every time model. Assumed from the kind of processor, or
// measured once per machine by `tilewright calibrate`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/result.h"

namespace tilewright::hw {

/// Read bandwidth of one level of memory. units: bytes per ns.
struct Bandwidth {
  double one = 0;  ///< one core alone
  double all = 0;  ///< all cores together

  /// Of `workers` cores together.
  double of(int workers) const;
};

/// What the code generator reaches on one register tile: rows x columns vector accumulators.
struct TileRate {
  DType dtype = DType::F32;  ///< of the operands
  int rows = 0, columns = 0;
  double share = 0;  ///< of the peak of `dtype` at that moment, 0 to kMostShare
  double rate = 0;   ///< operations per ns
};
/// Of the peak: a tile above it is a peak read too low.
inline constexpr double kMostShare = 1.05;

/// When and how quietly rates were measured.
struct Circumstances {
  int64_t when = 0;   ///< units: seconds since 1970, UTC
  double load = 0;    ///< programs that wanted a core at the same time, over the minute before
  double steal = 0;   ///< share of the time that the host of a virtual machine took, 0 to 1
  double spread = 0;  ///< of the bursts behind the f32 peak: from their median to the peak
  int kept = 0, bursts = 0;  ///< undisturbed ones of those, and all of them
  double seconds = 0;        ///< that the measurement took
};

struct CpuRates {
  bool measured = false;  ///< at least the peaks
  int readings = 1;       ///< measurements until now
  /// Parts that the machine was too busy to measure, with typical values: `f32`, `bf16`, `int8`,
  /// `fork_join`, `l1`, `l2`, `l3`, `dram`, `tiles`.
  std::vector<std::string> assumed;
  Circumstances about;
  double ghz = 0;  ///< the clock, by dependent additions; 0: not measured
  /// One core, register tiles only, two operations per multiply-add. units: operations per ns; 0:
  /// no such instructions.
  double f32 = 0, bf16 = 0, int8 = 0;
  Bandwidth l1, l2, l3, dram;
  double fork_join_ns = 0;  ///< starting all workers of a warm pool and waiting for them
  std::vector<TileRate> tiles;

  /// Operations per ns of one core on `dtype`; what its values are widened to where the machine has
  /// no such instructions.
  double peak(DType dtype) const;
  /// Share of the peak on a tile; the nearest measured one speaks for those that were not measured.
  double tile_share(DType dtype, int64_t rows, int64_t columns) const;
};

/// Typical rates for vectors of `vector_bytes`: those read on a core of Zen 5, scaled by width.
CpuRates assumed_rates(int vector_bytes, int cores);

/// Puts a typical value of `target`'s kind, or one between its neighbours, in place of each part of
/// `rates.assumed`.
void fill_assumed(CpuRates& rates, int vector_bytes, int cores);

/// What is known after two measurements: parts that one of them lacks from the other one, the
/// larger of two peaks that agree within 10 %, else the peaks that their own tiles confirm; the
/// rest from the newer.
CpuRates combined(const CpuRates& older, const CpuRates& newer);

/// `rates` of a machine whose clock is `factor` of what it was: peaks, tiles, L1 and L2 follow it.
CpuRates scaled(const CpuRates& rates, double factor);

/// What is impossible in measured rates, for a user: types against each other and against the
/// clock, tiles against the peak, a farther memory faster than a nearer one; empty if nothing is.
/// Assumed parts are not looked at. `fma_per_cycle`: the most of any processor.
struct Contradiction {
  std::string part;  ///< as in `assumed`: what to measure again or to give up
  std::string text;  ///< empty: there is none
};
Contradiction contradiction(const CpuRates& rates, int vector_bytes, int cores, int fma_per_cycle);

/// What measured rates hold for.
struct RatesKey {
  std::string processor;  ///< fingerprint_text of the machine
  int cores = 1;
  std::string compiler;  ///< version of the code generator that the tiles went through
  bool operator==(const RatesKey&) const = default;
};
/// This machine and this build.
RatesKey rates_key();

/// The file that `tilewright calibrate` keeps; the same rates give the same text.
std::string rates_to_json(const CpuRates& rates, const RatesKey& key);
/// errors: Parse, with the path of the member (unknown and missing members, numbers out of range);
/// Package if the rates are of another machine or compiler than `key`.
Result<CpuRates> rates_from_json(std::string_view text, const RatesKey& key);
/// The same of whatever machine they are, if the code generator is this build's.
Result<CpuRates> rates_of_other(std::string_view text);

/// `assumed`, or `measured` and the first digits of their hash: for a package's notes.
std::string rates_label(const CpuRates& rates);

}  // namespace tilewright::hw
