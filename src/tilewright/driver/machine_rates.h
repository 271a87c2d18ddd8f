// The rates of this machine: measured once, kept in the user's cache.
#pragma once

#include <string>

#include "tilewright/hw/rates.h"

namespace tilewright::driver {

/// Where the rates of this machine and build are kept. errors: Io.
Result<std::string> rates_path();

/// The kept rates. errors: Io (there are none), what hw::rates_from_json reports.
Result<hw::CpuRates> kept_rates();

/// Measures the rates, in about ten seconds. errors: what tune::calibrate reports.
Result<hw::CpuRates> measure_rates();
/// Keeps `rates` for later processes. errors: Io.
Status keep_rates(const hw::CpuRates& rates);

/// Whether kept rates should be measured once more: other work disturbed them, a few minutes have
/// passed, and it was not tried often. A message says so.
bool worth_another_reading(const hw::CpuRates& kept);

/// What schedules for this machine are chosen by. If `measure` and TILEWRIGHT_CALIBRATE is not
/// `off`, kept rates, measured ones where there are none, the best of both where those kept were
/// disturbed; else assumed ones, with a message where measuring failed. Asked for once per process.
const hw::CpuRates& machine_rates(bool measure);

/// Whether TILEWRIGHT_CALIBRATE is `off`: typical rates, so that schedules are the same everywhere.
bool calibration_off();

/// `assumed`, or `measured` and the first digits of their hash: for a package's notes.
std::string rates_label(const hw::CpuRates& rates);

}  // namespace tilewright::driver
