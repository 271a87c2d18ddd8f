// How fast a GPU is: the numbers of the time model for GPUs. Published or assumed per kind of
// device, or measured once per device by `tilewright calibrate --device`.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/dtype.h"
#include "tilewright/base/result.h"

namespace tilewright::hw {

/// Of the whole device, all units together. units: operations per ns (two per multiply-add), bytes
/// per ns; 0: the device has no such thing.
struct GpuRates {
  bool known = false;     ///< false: typical numbers of no particular device
  bool measured = false;  ///< on the device that is meant
  double f32 = 200, f16 = 0, f64 = 0;
  /// By matrix instructions, with sums in f32 (i8: i32).
  double mma_f16 = 0, mma_tf32 = 0, mma_i8 = 0;
  double shared = 400;  ///< reading shared memory
  double l2 = 200, dram = 20;
  double launch_ns = 20000;  ///< of an empty kernel, after another one
  double latency_ns = 100;   ///< of a load from device memory
  double sync_ns = 100;      ///< of a barrier in a block

  /// Operations per ns on numbers of `dtype` without matrix instructions; floats narrower than f32
  /// are computed in f32.
  double peak(DType dtype) const;
};

/// The file that `tilewright calibrate --device` keeps: what was measured, and of which device.
std::string gpu_rates_to_json(const GpuRates& rates, const std::string& device);
/// The rates in `text`; what is not measured is as in `base`. errors: Parse (no such file, numbers
/// out of range), Package (of another device).
Result<GpuRates> gpu_rates_from_json(std::string_view text, const std::string& device,
                                     const GpuRates& base);

}  // namespace tilewright::hw
