// The rates of this machine: measured once, kept in the user's cache, checked by later verbs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tilewright/hw/rates.h"

namespace tilewright::driver {

/// Where the rates of this machine and build are kept. errors: Io.
Result<std::string> rates_path();

/// The kept rates. errors: Io (there are none), Package (they contradict themselves), what
/// hw::rates_from_json reports.
Result<hw::CpuRates> kept_rates();

/// Measures the rates, in about ten seconds; what the machine was too busy for is assumed. errors:
/// what measure::calibrate reports.
Result<hw::CpuRates> measure_rates();
/// Keeps `rates` for later processes. errors: Io.
Status keep_rates(const hw::CpuRates& rates);

/// What finding rates needs of the world; tests give their own.
struct RatesSource {
  std::function<Result<hw::CpuRates>()> kept, measure;
  std::function<Status(const hw::CpuRates&)> keep;
  /// f32 peak of this moment in some milliseconds; units: operations per ns; 0: the machine is
  /// busy.
  std::function<double()> peak;
  std::function<int64_t()> now;  ///< units: seconds since 1970
  std::function<void(const std::string&)> say;
};
/// Those of this machine.
RatesSource machine_source();

/// Kept rates. Measured ones where there are none, where those kept cannot be right, and, some time
/// after, where the machine was too busy for all of them. Rates older than a day are compared with
/// the peak of the moment, and scaled to it if it is another one three times in a row.
hw::CpuRates find_rates(const RatesSource& source, const hw::CpuRates& typical);

/// Why kept rates, sound as they are, should be measured once more at `now`: the machine was busy
/// or disturbed, and ten minutes have passed, after each further measurement twice as many. Absent
/// if they should not.
std::optional<std::string> why_again(const hw::CpuRates& kept, int64_t now);

/// What schedules for this machine are chosen by: find_rates if `measure` and TILEWRIGHT_CALIBRATE
/// is not `off`, else typical ones. Asked for once per process.
const hw::CpuRates& machine_rates(bool measure);

/// What is known without measuring: kept rates if there are any and `measured` ones are wanted,
/// else typical ones. For reports, which choose nothing.
hw::CpuRates known_rates(bool measured);

/// Whether TILEWRIGHT_CALIBRATE is `off`: typical rates, so that schedules are the same everywhere.
bool calibration_off();

/// For a user, of rates that other programs kept from being measured in part or at all; empty if
/// none did.
std::string busy_warning(const hw::CpuRates& rates);

}  // namespace tilewright::driver
