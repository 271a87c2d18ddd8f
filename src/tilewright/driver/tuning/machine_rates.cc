// When this machine is measured, and when what was measured is believed.
//
//   no file, or one that contradicts itself     measure, keep
//   the machine was busy or disturbed then      measure again after 10 minutes, then 20, 40, ..
//   older than a day                            three readings of the f32 peak; if all differ by
//                                               more than 15 %, what follows the clock is scaled
//   else                                        as kept
#include "tilewright/driver/tuning/machine_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tilewright/base/cache.h"
#include "tilewright/base/environment.h"
#include "tilewright/base/file.h"
#include "tilewright/base/statistics.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/device_use.h"
#include "tilewright/hw/target.h"
#include "tilewright/measure/calibrate.h"
#include "tilewright/measure/probes.h"

namespace tilewright::driver {
namespace {

constexpr int64_t kMinute = 60, kDay = 24 * 60 * kMinute;  // units: seconds
constexpr int64_t kFirstPause = 10 * kMinute;
constexpr int kMostDoublings = 10;
/// Of a peak that is still the measured one.
constexpr double kDrift = 0.15;
constexpr int kDriftReadings = 3;
constexpr double kCheckSeconds = 0.005;
constexpr const char* kMeasureAgain = "tilewright calibrate --force";

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Programs that wanted a core, on average over the last minute; 0 where the system does not say.
double load_now() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

/// Time of all CPUs until now, and what of it the host of a virtual machine took. units: ticks.
struct CpuTicks {
  double all = 0, stolen = 0;
};
CpuTicks cpu_ticks() {
  std::ifstream file("/proc/stat");
  std::string label;
  file >> label;
  CpuTicks ticks;
  double value = 0;
  for (int column = 0; column < 8 && file >> value; ++column) {
    ticks.all += value;
    if (column == 7) ticks.stolen = value;  // user nice system idle iowait irq softirq steal
  }
  return ticks;
}

Result<hw::CpuRates> checked(hw::CpuRates rates) {
  const hw::CpuTarget& host = hw::host();
  const hw::Contradiction found =
      hw::contradiction(rates, host.vector_bytes, host.cores, measure::most_fma_per_cycle());
  if (found.text.empty()) return rates;
  return fail(ErrorKind::Package, "the kept measurement of this machine cannot be right",
              found.text, kMeasureAgain);
}

hw::CpuRates measured_again(const RatesSource& source, const Result<hw::CpuRates>& kept,
                            const hw::CpuRates& typical) {
  Result<hw::CpuRates> measured = source.measure();
  if (!measured) {
    source.say(
        fmt::format("warning: this machine could not be measured ({}). Typical speeds are "
                    "assumed; code may be slower",
                    measured.error().what));
    return kept ? *kept : typical;
  }
  const hw::CpuRates rates = kept ? hw::combined(*kept, *measured) : *measured;
  if (const Status status = source.keep(rates); !status)
    source.say(fmt::format("warning: {}: {}", status.error().what, status.error().why));
  return rates;
}

/// Scales rates to the machine of this moment if it is clearly another one.
hw::CpuRates checked_against_now(const RatesSource& source, const hw::CpuRates& rates) {
  std::vector<double> readings;
  for (int i = 0; i < kDriftReadings; ++i) {
    const double peak = source.peak();
    if (peak <= 0 || measure::agree(peak, rates.f32, kDrift)) return rates;
    readings.push_back(peak);
  }
  const double now = median(readings);
  source.say(
      fmt::format("warning: the machine is not as it was measured ({:.0f} -> {:.0f} Gop/s). Speeds "
                  "are scaled; to measure it again: {}",
                  rates.f32, now, kMeasureAgain));
  return hw::scaled(rates, now / rates.f32);
}

}  // namespace

std::string busy_warning(const hw::CpuRates& rates) {
  if (rates.assumed.empty()) return "";
  const std::string what =
      rates.measured ? fmt::format(" {}", fmt::join(rates.assumed, ", ")) : std::string();
  return fmt::format(
      "warning: the machine was too busy to measure{} (load {:.1f}). Typical speeds are assumed{}; "
      "code may be slower. When idle: {}",
      what, rates.about.load, rates.measured ? " for these" : "", kMeasureAgain);
}

std::optional<std::string> why_again(const hw::CpuRates& kept, int64_t now) {
  const std::string disturbed = measure::disturbed(kept);
  if (kept.assumed.empty() && disturbed.empty()) return std::nullopt;
  const int doublings = std::clamp(kept.readings - 1, 0, kMostDoublings);
  const int64_t age = now - kept.about.when;
  // A time in the future is of a clock that was set since: it says nothing.
  if (age >= 0 && age < kFirstPause << doublings) return std::nullopt;
  return kept.assumed.empty() ? "other work disturbed it the last time: " + disturbed
                              : std::string("it was too busy the last time");
}

hw::CpuRates find_rates(const RatesSource& source, const hw::CpuRates& typical) {
  const Result<hw::CpuRates> kept = source.kept();
  if (!kept) {
    source.say(kept.error().kind == ErrorKind::Io
                   ? "measuring this machine once, about ten seconds (--no-calibrate leaves it out)"
                   : fmt::format("measuring this machine again: {}: {}", kept.error().what,
                                 kept.error().why));
    const hw::CpuRates rates = measured_again(source, kept, typical);
    if (const std::string warning = busy_warning(rates); !warning.empty()) source.say(warning);
    return rates;
  }
  const int64_t now = source.now();
  if (const auto why = why_again(*kept, now)) {
    source.say("measuring this machine once more: " + *why);
    const hw::CpuRates rates = measured_again(source, kept, typical);
    if (const std::string warning = busy_warning(rates); !warning.empty()) source.say(warning);
    return rates;
  }
  if (!kept->measured) source.say(busy_warning(*kept));
  const bool old = now - kept->about.when > kDay || now < kept->about.when;
  return old && kept->measured ? checked_against_now(source, *kept) : *kept;
}

Result<std::string> rates_path() {
  const hw::RatesKey key = hw::rates_key();
  const std::string hash =
      sha256(fmt::format("{}\n{}\n{}", key.processor, key.cores, key.compiler));
  return TW_TRY(cache_folder("rates")) + "/" + hash.substr(0, 16) + ".json";
}

Result<hw::CpuRates> kept_rates() {
  const std::string path = TW_TRY(rates_path());
  Result<hw::CpuRates> rates = hw::rates_from_json(TW_TRY(read_file(path)), hw::rates_key());
  if (rates) rates = checked(*std::move(rates));
  if (!rates) return tl::unexpected<Error>(std::move(rates.error()).at(path));
  return rates;
}

Result<hw::CpuRates> measure_rates() {
  const DeviceUse use = TW_TRY(use_device("cpu"));
  Progress progress("calibrating");
  measure::CompileKernel compile;
#if TILEWRIGHT_LLVM
  compile = [](const Func& lowered) { return compile::compile_kernel(lowered, hw::host()); };
#endif
  const auto shown = [&](int done, int total, const std::string& what) {
    progress.update(done, total, what);
    return check_interrupt();
  };
  const double load = load_now();
  const CpuTicks before = cpu_ticks();
  hw::CpuRates rates =
      TW_TRY(measure::calibrate(hw::host(), measure::system_probes(hw::host(), compile), shown));
  const CpuTicks after = cpu_ticks();
  rates.about.when = seconds_now();
  rates.about.load = load;
  if (after.all > before.all)
    rates.about.steal = (after.stolen - before.stolen) / (after.all - before.all);
  // What schedules follow is what is kept, digit for digit.
  return hw::rates_from_json(hw::rates_to_json(rates, hw::rates_key()), hw::rates_key());
}

Status keep_rates(const hw::CpuRates& rates) {
  return write_file(TW_TRY(rates_path()), hw::rates_to_json(rates, hw::rates_key()));
}

RatesSource machine_source() {
  return {kept_rates,  measure_rates,
          keep_rates,  [] { return measure::read_peak(DType::F32, kCheckSeconds).rate; },
          seconds_now, [](const std::string& text) { say(text); }};
}

bool calibration_off() { return environment_off("TILEWRIGHT_CALIBRATE"); }

const hw::CpuRates& machine_rates(bool measure) {
  if (!measure || calibration_off()) return hw::host().rates;
  static const hw::CpuRates rates = [] {
    // Measuring every time would be worse than not measuring.
    const Result<std::string> path = rates_path();
    if (path) return find_rates(machine_source(), hw::host().rates);
    say(fmt::format("warning: typical speeds are assumed, code may be slower: {}: {}",
                    path.error().what, path.error().why));
    return hw::host().rates;
  }();
  return rates;
}

hw::CpuRates known_rates(bool measured) {
  if (!measured || calibration_off()) return hw::host().rates;
  return kept_rates().value_or(hw::host().rates);
}

}  // namespace tilewright::driver
