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
  double share = 0;  ///< of the peak of `dtype`, 0 to 1
};

struct CpuRates {
  bool measured = false;
  int readings = 1;  ///< measurements that these are the best of
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

/// Typical rates of a processor with vectors of `vector_bytes`. source: specs/performance.md 0.
CpuRates assumed_rates(int vector_bytes, int cores);

/// What the machine reached in either of two measurements: other programs only slow a reading down.
CpuRates best_of(const CpuRates& a, const CpuRates& b);

/// What measured rates hold for.
struct RatesKey {
  std::string processor;  ///< as the system names it, with family, model and stepping
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

}  // namespace tilewright::hw
