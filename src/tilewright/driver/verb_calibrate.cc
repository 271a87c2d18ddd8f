// calibrate: measures this machine for the models that choose schedules.
#include <fmt/format.h>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/gpu_calibrate.h"
#include "tilewright/driver/gpu_kernel.h"
#include "tilewright/driver/gpu_knowledge.h"
#include "tilewright/driver/machine_rates.h"
#include "tilewright/hw/target.h"
#include "tilewright/tune/calibrate.h"

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
  const bool again = !force && rates && worth_another_reading(*rates);
  const bool measure = force || again || !rates;
  if (measure) {
    const hw::CpuRates now = TW_TRY(measure_rates());
    rates = again ? hw::best_of(*rates, now) : now;
    TW_TRY_STATUS(keep_rates(*rates));
  }
  say(fmt::format("{} {}", measure ? "measured now, kept in" : "measured before, in", path));
  if (const std::string why = tune::disturbed(*rates); !why.empty())
    say(
        fmt::format("warning: other work disturbed the measurement: {}; tilewright calibrate "
                    "--force measures again",
                    why));
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

std::string gpu_rates_table(const hw::GpuRates& rates) {
  const std::vector<std::vector<std::string>> rows = {
      {"what", "all units"},
      {"f32 peak", rate(rates.f32, "Gop/s")},
      {"f16 peak", rate(rates.f16, "Gop/s")},
      {"shared memory read", rate(rates.shared, "GB/s")},
      {"L2 read", rate(rates.l2, "GB/s")},
      {"device memory read", rate(rates.dram, "GB/s")},
      {"launch", rate(rates.launch_ns, "ns")},
      {"barrier", rate(rates.sync_ns, "ns")}};
  return table(rows);
}

/// For the device that `id` names; what is compiled for it is the generic target of its language.
Result<int> calibrate_device(const std::string& id, const std::string& target_name, bool force,
                             bool as_json) {
  const std::string language = id.substr(0, id.find(':'));
  const hw::GpuTarget target =
      TW_TRY(hw::find_gpu_target(target_name.empty() ? language : target_name));
  const auto device = TW_TRY(gpu_for(target, id));
  const std::string key = gpu_target_key(target, device->info());
  const std::string path = TW_TRY(gpu_rates_path(key));
  Result<hw::GpuRates> rates = kept_gpu_rates(key, target.rates);
  const bool measure = force || !rates;
  if (measure) {
    Progress progress("calibrating");
    rates =
        TW_TRY(calibrate_gpu(target, *device, [&](int done, int total, const std::string& what) {
          progress.update(done, total, what);
          return check_interrupt();
        }));
    TW_TRY_STATUS(keep_gpu_rates(key, *rates));
  }
  say(fmt::format("{}: {} {}", key, measure ? "measured now, kept in" : "measured before, in",
                  path));
  if (!as_json) {
    fmt::print("{}", gpu_rates_table(*rates));
    return 0;
  }
  nlohmann::ordered_json json = document("calibrate");
  json["path"] = path;
  json["measured_now"] = measure;
  const auto kept = nlohmann::ordered_json::parse(hw::gpu_rates_to_json(*rates, key));
  json["device"] = kept["device"];
  json["rates"] = kept["rates"];
  print_json(json);
  return 0;
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "calibrate", "Measures this machine once, for the models that choose schedules");
  struct Options {
    bool force = false;
    std::string device, target;
  };
  auto options = std::make_shared<Options>();
  verb->add_flag("--force", options->force, "measure again, whatever is kept");
  verb->add_option("--device", options->device, "a GPU instead of the processor: opencl, cuda:1");
  verb->add_option("--target", options->target, "what is compiled for it (default: its language)");
  verb->callback([&context, options] {
    context.action = [&context, options] {
      if (options->device.empty() || options->device == "cpu")
        return calibrate(options->force, context.json);
      return calibrate_device(options->device, options->target, options->force, context.json);
    };
  });
}

}  // namespace tilewright::driver
