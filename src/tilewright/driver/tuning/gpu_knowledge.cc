#include "tilewright/driver/tuning/gpu_knowledge.h"

#include <filesystem>

#include "tilewright/base/cache.h"
#include "tilewright/base/file.h"
#include "tilewright/driver/tuning/gpu_kernel.h"
#include "tilewright/driver/tuning/machine_rates.h"
#include "tilewright/driver/tuning/record_place.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/measure/task.h"
#include "tilewright/records/open/open.h"

namespace tilewright::driver {
namespace {

constexpr const char* kPart = "gpu-rates";  // of the user's cache

bool any_rates() {
  if (calibration_off()) return false;
  const Result<std::string> folder = cache_folder(kPart);
  std::error_code ignored;
  return folder && !std::filesystem::is_empty(*folder, ignored);
}

bool any_records(const SubjectOptions& options) {
  return !options.records.empty() || records::store_exists(record_place("").name);
}

}  // namespace

Result<std::string> gpu_rates_path(const std::string& key) {
  return TW_TRY(cache_folder(kPart)) + "/" + sha256(key).substr(0, 16) + ".json";
}

Result<hw::GpuRates> kept_gpu_rates(const std::string& key, const hw::GpuRates& base) {
  const std::string path = TW_TRY(gpu_rates_path(key));
  Result<hw::GpuRates> rates = hw::gpu_rates_from_json(TW_TRY(read_file(path)), key, base);
  if (!rates) return tl::unexpected<Error>(std::move(rates.error()).at(path));
  return rates;
}

Status keep_gpu_rates(const std::string& key, const hw::GpuRates& rates) {
  return write_file(TW_TRY(gpu_rates_path(key)), hw::gpu_rates_to_json(rates, key));
}

hw::GpuTarget fitted(const hw::GpuTarget& target, const runtime::GpuDeviceInfo& device) {
  const Result<hw::GpuRates> rates = kept_gpu_rates(gpu_target_key(target, device), target.rates);
  if (!rates) return target;
  hw::GpuTarget known = target;
  known.rates = *rates;
  if (device.units > 0) known.units = device.units;
  return known;
}

Status use_gpu_knowledge(compile::CompileOptions& compile, const SubjectOptions& options) {
  const bool rates = !options.no_calibrate && any_rates();
  const bool records = !options.no_records && any_records(options);
  if (!rates && !records) return {};  // looking for devices takes time
  const hw::GpuTarget gpu = *compile.target.gpu();
  if (options.elsewhere) {  // what was measured on this machine's says nothing
    if (records && !options.gpu.empty())
      compile.tuned =
          TW_TRY(stored_records(options.records, {measure::gpu_key(gpu, options.gpu)})).schedules;
    return {};
  }
  const auto device = gpu_for(gpu, options.device);
  if (!device) return {};  // compiling needs none
  if (rates) compile.target = hw::as_target(fitted(gpu, (*device)->info()));
  if (records)
    compile.tuned =
        TW_TRY(stored_records(options.records, {gpu_target_key(gpu, (*device)->info())})).schedules;
  return {};
}

}  // namespace tilewright::driver
