// calibrate: measures this machine for the models that choose schedules.
#include <fmt/format.h>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/machine_rates.h"
#include "tilewright/hw/target.h"

namespace tilewright::driver {
namespace {

std::string rate(double value, const char* unit) {
  return value > 0 ? fmt::format("{:.4g} {}", value, unit) : "--";
}

std::string tiles_table(const hw::CpuRates& rates) {
  std::vector<std::vector<std::string>> rows = {{"tile", "dtype", "of peak"}};
  for (const hw::TileRate& tile : rates.tiles)
    rows.push_back({fmt::format("{}x{}", tile.rows, tile.columns), std::string(name(tile.dtype)),
                    fmt::format("{:.1f} %", 100 * tile.share)});
  return table(rows);
}

void print_rates(const hw::CpuRates& rates) {
  const int cores = hw::host().cores;
  std::vector<std::vector<std::string>> rows = {
      {"what", "one core", fmt::format("{} cores", cores)}};
  const auto peak = [&](const char* what, double value) {
    rows.push_back({what, rate(value, "Gop/s"), rate(value * cores, "Gop/s")});
  };
  peak("f32 peak", rates.f32);
  peak("bf16 peak", rates.bf16);
  peak("int8 peak", rates.int8);
  const auto level = [&](const char* what, const hw::Bandwidth& value) {
    rows.push_back({what, rate(value.one, "GB/s"), rate(value.all, "GB/s")});
  };
  level("L1 read", rates.l1);
  level("L2 read", rates.l2);
  level("L3 read", rates.l3);
  level("DRAM read", rates.dram);
  rows.push_back({"fork and join", "--", rate(rates.fork_join_ns, "ns")});
  fmt::print("{}\n{}", table(rows), tiles_table(rates));
}

Result<int> calibrate(bool force, bool as_json) {
  const std::string path = TW_TRY(rates_path());
  Result<hw::CpuRates> rates = kept_rates();
  const bool measure = force || !rates;
  if (measure) {
    rates = TW_TRY(measure_rates());
    TW_TRY_STATUS(keep_rates(*rates));
  }
  say(fmt::format("{} {}", measure ? "measured now, kept in" : "measured before, in", path));
  if (!as_json) {
    print_rates(*rates);
    return 0;
  }
  nlohmann::ordered_json json = document("calibrate");
  json["path"] = path;
  json["measured_now"] = measure;
  json["hash"] = rates_label(*rates);
  const auto kept = nlohmann::ordered_json::parse(hw::rates_to_json(*rates, hw::rates_key()));
  json["machine"] = kept["machine"];
  json["rates"] = kept["rates"];
  print_json(json);
  return 0;
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "calibrate", "Measures this machine once, for the models that choose schedules");
  auto force = std::make_shared<bool>(false);
  verb->add_flag("--force", *force, "measure again, whatever is kept");
  verb->callback([&context, force] {
    context.action = [&context, force] { return calibrate(*force, context.json); };
  });
}

}  // namespace tilewright::driver
