#include "tilewright/driver/machine_rates.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "tilewright/base/cache.h"
#include "tilewright/base/file.h"
#include "tilewright/driver/backend.h"
#include "tilewright/driver/console.h"
#include "tilewright/hw/target.h"
#include "tilewright/tune/calibrate.h"

namespace tilewright::driver {
namespace {

/// Measurements at most of a machine that is never quiet, and the time between two of them.
constexpr int kMostReadings = 4;
constexpr std::chrono::minutes kBetweenReadings{5};

hw::CpuRates typical_rates(const Error& reason) {
  say(fmt::format("warning: schedules follow typical rates: {}: {}", reason.what, reason.why));
  return hw::host().rates;
}

hw::CpuRates find_rates() {
  // Measuring every time would be worse than not measuring.
  if (const Result<std::string> path = rates_path(); !path) return typical_rates(path.error());
  Result<hw::CpuRates> kept = kept_rates();
  if (kept && !worth_another_reading(*kept)) return *std::move(kept);
  if (!kept)
    say(kept.error().kind == ErrorKind::Io
            ? "measuring this machine once, about ten seconds (--no-calibrate leaves it out)"
            : fmt::format("measuring this machine again: {}", kept.error().what));
  Result<hw::CpuRates> measured = measure_rates();
  if (!measured) return kept ? *std::move(kept) : typical_rates(measured.error());
  if (kept) measured = hw::best_of(*kept, *measured);
  if (const Status status = keep_rates(*measured); !status)
    say(fmt::format("warning: {}: {}", status.error().what, status.error().why));
  return *std::move(measured);
}

}  // namespace

Result<std::string> rates_path() {
  const hw::RatesKey key = hw::rates_key();
  const std::string hash =
      sha256(fmt::format("{}\n{}\n{}", key.processor, key.cores, key.compiler));
  return TW_TRY(cache_folder("rates")) + "/" + hash.substr(0, 16) + ".json";
}

Result<hw::CpuRates> kept_rates() {
  const std::string path = TW_TRY(rates_path());
  Result<hw::CpuRates> rates = hw::rates_from_json(TW_TRY(read_file(path)), hw::rates_key());
  if (!rates) return tl::unexpected<Error>(std::move(rates.error()).at(path));
  return rates;
}

Result<hw::CpuRates> measure_rates() {
  Progress progress("calibrating");
  tune::CalibrateOptions options;
#if TILEWRIGHT_LLVM
  options.compile = [](const Func& lowered) { return compile_kernel(lowered, hw::host()); };
#endif
  options.progress = [&](int done, int total, const std::string& what) {
    progress.update(done, total, what);
    return check_interrupt();
  };
  const hw::CpuRates rates = TW_TRY(tune::calibrate(hw::host(), options));
  // What schedules follow is what is kept, digit for digit.
  return hw::rates_from_json(hw::rates_to_json(rates, hw::rates_key()), hw::rates_key());
}

Status keep_rates(const hw::CpuRates& rates) {
  return write_file(TW_TRY(rates_path()), hw::rates_to_json(rates, hw::rates_key()));
}

bool worth_another_reading(const hw::CpuRates& kept) {
  const std::string why = tune::disturbed(kept);
  const Result<std::string> path = rates_path();
  if (why.empty() || kept.readings >= kMostReadings || !path) return false;
  std::error_code gone;
  const auto written = std::filesystem::last_write_time(*path, gone);
  if (gone || std::filesystem::file_time_type::clock::now() - written < kBetweenReadings)
    return false;
  say(fmt::format("measuring this machine once more, other work disturbed the last time: {}", why));
  return true;
}

bool calibration_off() {
  const char* text = std::getenv("TILEWRIGHT_CALIBRATE");
  return text != nullptr && std::string_view(text) == "off";
}

const hw::CpuRates& machine_rates(bool measure) {
  if (!measure || calibration_off()) return hw::host().rates;
  static const hw::CpuRates rates = find_rates();
  return rates;
}

std::string rates_label(const hw::CpuRates& rates) {
  if (!rates.measured) return "assumed";
  return "measured " + sha256(hw::rates_to_json(rates, {})).substr(0, 12);
}

}  // namespace tilewright::driver
