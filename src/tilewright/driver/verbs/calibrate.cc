// calibrate: measures this machine for the models that choose schedules.
#include "tilewright/measure/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>

#include "tilewright/base/json.h"
#include "tilewright/compile/fpga/backend.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/device_use.h"
#include "tilewright/driver/tuning/gpu_calibrate.h"
#include "tilewright/driver/tuning/gpu_kernel.h"
#include "tilewright/driver/tuning/gpu_knowledge.h"
#include "tilewright/driver/tuning/machine_rates.h"
#include "tilewright/driver/verbs/calibrate_fpga.h"
#include "tilewright/hw/target.h"

namespace tilewright::driver {
namespace {

constexpr const char* kDeviceHelp = "a GPU instead of the processor: opencl, cuda:1";

std::string rate(double value, const char* unit) {
  return value > 0 ? fmt::format("{:.4g} {}", value, unit) : "--";
}

std::string tiles_table(const hw::CpuRates& rates) {
  std::vector<std::vector<std::string>> rows = {{"tile", "dtype", "of peak", "Gop/s"}};
  for (const hw::TileRate& tile : rates.tiles)
    rows.push_back({fmt::format("{}x{}", tile.rows, tile.columns), std::string(name(tile.dtype)),
                    fmt::format("{:.1f} %", 100 * tile.share), fmt::format("{:.4g}", tile.rate)});
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

std::string date(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

/// What to think of the rates, in one line.
std::string verdict_of(const hw::CpuRates& rates) {
  if (!rates.measured) return "busy: typical speeds are assumed";
  if (!rates.assumed.empty())
    return fmt::format("partly measured: typical values of {}", fmt::join(rates.assumed, ", "));
  const std::string disturbed = measure::disturbed(rates);
  return disturbed.empty() ? "sound" : "disturbed by other work: " + disturbed;
}

void print_circumstances(const hw::CpuRates& rates) {
  const hw::Circumstances& about = rates.about;
  fmt::print(
      "measured {} in {:.1f} s, {} time{}; load {:.1f}, {:.1f} % of the time taken by the "
      "host\nf32 peak: {} of {} bursts undisturbed, spread {:.1f} %; clock {:.2f} GHz\n"
      "verdict: {}\n",
      date(about.when), about.seconds, rates.readings, rates.readings == 1 ? "" : "s", about.load,
      100 * about.steal, about.kept, about.bursts, 100 * about.spread, rates.ghz,
      verdict_of(rates));
}

/// Kept rates, or measured ones; `fresh`: measured now.
Result<hw::CpuRates> rates_to_show(bool force, bool& fresh) {
  Result<hw::CpuRates> kept = kept_rates();
  if (!kept && kept.error().kind == ErrorKind::Package)
    say(fmt::format("{}: {}", kept.error().what, kept.error().why));
  const bool again = kept && why_again(*kept, machine_source().now());
  fresh = force || !kept || again;
  if (!fresh) return kept;
  hw::CpuRates rates = TW_TRY(measure_rates());
  if (again && !force) rates = hw::combined(*kept, rates);
  TW_TRY_STATUS(keep_rates(rates));
  return rates;
}

Result<int> calibrate(bool force, bool as_json) {
  const std::string path = TW_TRY(rates_path());
  bool fresh = false;
  const hw::CpuRates rates = TW_TRY(rates_to_show(force, fresh));
  say(fmt::format("{} {}", fresh ? "measured now, kept in" : "measured before, in", path));
  if (const std::string warning = busy_warning(rates); !warning.empty()) say(warning);
  if (!as_json) {
    print_rates(rates);
    print_circumstances(rates);
    return 0;
  }
  nlohmann::ordered_json json = document("calibrate");
  json["path"] = path;
  json["measured_now"] = fresh;
  json["hash"] = hw::rates_label(rates);
  json["verdict"] = verdict_of(rates);
  const auto kept = parse_ordered_json(hw::rates_to_json(rates, hw::rates_key()));
  for (const char* member : {"machine", "measurement", "rates"}) json[member] = kept[member];
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
    const DeviceUse use = TW_TRY(use_device(id));
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
  const auto kept = parse_ordered_json(hw::gpu_rates_to_json(*rates, key));
  json["device"] = kept["device"];
  json["rates"] = kept["rates"];
  print_json(json);
  return 0;
}

}  // namespace

void add_calibrate(Verb app, VerbContext& context) {
  Verb verb =
      app.add_verb("calibrate", "Measures this machine once, for the models that choose schedules");
  struct Options {
    bool force = false;
    std::string device, target, hw, output;
  };
  auto options = std::make_shared<Options>();
  verb.add_flag("--force", options->force, "measure again, whatever is kept");
  verb.add_option("--device", options->device, kDeviceHelp);
  verb.add_option(
      "--target", options->target,
      "what is compiled for it (default: its language); or fpga: cells of operators, by "
      "Yosys");
  verb.add_option("--hw", options->hw, "of fpga: the device, a name or a file");
  verb.add_option("-o,--output", options->output,
                  "of fpga: file to write, the device with what was measured");
  verb.needs("--hw", "--target");
  verb.needs("--output", "--hw");
  verb.callback([&context, options] {
    context.action = [&context, options]() -> Result<int> {
      const bool fpga = options->target == compile::kFpgaTarget;
      if (fpga && !options->device.empty())
        return fail(ErrorKind::Usage, "--device is not for --target fpga", {}, "--hw vu9p");
      if (fpga && options->hw.empty())
        return fail(ErrorKind::Usage, "--target fpga needs a device", {}, "--hw vu9p");
      if (fpga) return calibrate_fpga({options->hw, options->output}, context.json);
      if (!options->hw.empty())
        return fail(ErrorKind::Usage, "--hw is for --target fpga", {}, "leave it out");
      if (!options->target.empty() && options->device.empty())
        return fail(ErrorKind::Usage, "--target does nothing without --device",
                    fmt::format("--device: {}", kDeviceHelp),
                    "add --device, or leave --target out");
      if (options->device.empty() || options->device == "cpu")
        return calibrate(options->force, context.json);
      return calibrate_device(options->device, options->target, options->force, context.json);
    };
  });
}

}  // namespace tilewright::driver
