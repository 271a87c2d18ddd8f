#include "tilewright/hw/gpu_rates.h"

#include <fmt/format.h>

#include "tilewright/base/json.h"

namespace tilewright::hw {
namespace {

constexpr const char* kGpuSchema = "tilewright.gpu_rates";
/// Raised whenever what is measured changes its meaning.
constexpr int kGpuVersion = 1;
/// Nothing that was read is outside of these.
constexpr double kLeast = 1e-3, kMost = 1e9;

struct Member {
  const char* name;
  double GpuRates::* value;
};
/// What is measured; a rate of 0 is a type that the device lacks.
constexpr Member kMeasured[] = {
    {"f32", &GpuRates::f32},         {"f16", &GpuRates::f16},   {"shared", &GpuRates::shared},
    {"l2", &GpuRates::l2},           {"dram", &GpuRates::dram}, {"launch_ns", &GpuRates::launch_ns},
    {"sync_ns", &GpuRates::sync_ns},
};

tl::unexpected<Error> unreadable(const std::string& what, const std::string& why) {
  return fail(ErrorKind::Parse, what, why, "tilewright calibrate --device ... --force");
}

}  // namespace

double GpuRates::peak(DType dtype) const {
  if (dtype == DType::F64) return f64 > 0 ? f64 : f32 / 2;
  return f32;
}

std::string gpu_rates_to_json(const GpuRates& rates, const std::string& device) {
  nlohmann::ordered_json json = {
      {"schema", kGpuSchema}, {"version", kGpuVersion}, {"device", device}};
  for (const Member& member : kMeasured)
    json["rates"][member.name] = std::stod(fmt::format("{:.4g}", rates.*member.value));
  return json_text(json, 1) + "\n";
}

Result<GpuRates> gpu_rates_from_json(std::string_view text, const std::string& device,
                                     const GpuRates& base) {
  const nlohmann::json json = parse_json(text, std::nothrow);
  if (!json.is_object() || json.value("schema", nlohmann::json()) != kGpuSchema ||
      !json.contains("rates") || !json["rates"].is_object())
    return unreadable("these are no rates of a GPU",
                      fmt::format("an object with schema '{}' is expected", kGpuSchema));
  if (json.value("version", nlohmann::json()) != kGpuVersion ||
      json.value("device", nlohmann::json()) != device)
    return fail(ErrorKind::Package, "the rates are of another device or version",
                fmt::format("expected: {}, version {}", device, kGpuVersion),
                "tilewright calibrate --device ... --force");
  GpuRates rates = base;
  rates.known = rates.measured = true;
  for (const Member& member : kMeasured) {
    const auto found = json["rates"].find(member.name);
    const bool number = found != json["rates"].end() && found->is_number();
    const double value = number ? found->get<double>() : -1;
    const bool absent = value == 0 && member.value == &GpuRates::f16;
    if (!absent && !(value >= kLeast && value <= kMost))
      return unreadable(fmt::format("the rate '{}' is missing or no reading", member.name),
                        fmt::format("a number from {} to {} is expected", kLeast, kMost));
    rates.*member.value = value;
  }
  return rates;
}

}  // namespace tilewright::hw
