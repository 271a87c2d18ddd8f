#include "tilewright/driver/fleet/offers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <map>

#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/base/process.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/devices.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/fleet/runner_device.h"
#include "tilewright/driver/tuning/machine_rates.h"
#include "tilewright/fleet/measure/model_device.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/hw/target_file.h"

namespace tilewright::driver {
namespace {

using fleet::Offer;

/// A name of the machine that stays when it is started anew.
std::string machine_id() {
  const Result<std::string> id = read_file("/etc/machine-id");
  return id && id->size() >= 32 ? id->substr(0, 32) : host_name();
}

/// This machine's processor: comparable are those with the same caches, cores and features.
Offer processor() {
  Offer offer;
  const hw::CpuTarget& host = hw::host();
  offer.device = "cpu";
  offer.target = "cpu";
  hw::CpuTarget named = host;  // others read it: there `cpu` is another processor
  named.name = fmt::format("{}-{}", host.cpu, host.machine);
  offer.target_file = hw::to_toml(hw::as_target(named));
  offer.device_class = fmt::format("cpu:{}@{}", host.cpu, host.machine);
  return offer;
}

/// The same with the speeds of this machine, measured if they were not: others plan by them.
Offer measured_processor() {
  Offer offer = processor();
  const hw::CpuRates& rates = machine_rates(true);
  if (rates.measured) offer.rates = hw::rates_to_json(rates, hw::rates_key());
  return offer;
}

/// Any other device of this program.
Result<Offer> device_of(const std::string& id) {
  std::vector<std::string> known = {"cpu"};
  for (const compile::Backend* backend : compile::backends())
    for (const compile::DeviceState& state : backend->runtime().states()) {
      known.push_back(state.id);
      if (state.id != id) continue;
      if (!state.reason.empty())
        return fail(ErrorKind::Device, fmt::format("{} is not usable here", id), state.reason,
                    "tilewright devices tries all of them");
      Offer offer;
      offer.device = id;
      offer.target = std::string(backend->name());
      // Simulators count the same cycles on any machine; others are known by what they are.
      offer.device_class = compile::keeps_time(id) || !backend->runtime().implies_target()
                               ? id
                               : fmt::format("{}:{}", backend->name(), state.detail);
      return offer;
    }
  return fail(ErrorKind::Device, fmt::format("there is no device '{}'", id),
              fmt::format("there are {}, runner:CMD and ssh:BOARD", fmt::join(known, ", ")),
              did_you_mean(id, known));
}

/// What `CMD --version` says of the machine that it runs code for: its last word. `named`: as the
/// user has named the device.
Result<Offer> runner_of(const std::string& named, const std::string& device) {
  std::vector<std::string> argv = runner_command(device);
  if (argv.empty())
    return fail(ErrorKind::Usage, "runner: has no command", {},
                "--device 'runner:qemu-aarch64 -L /usr/aarch64-linux-gnu tilewright-runner'");
  argv.push_back("--version");
  const std::string by_hand = fmt::format("try it by hand: {}", fmt::join(argv, " "));
  ToolOptions options;
  options.limit_seconds = 30;
  const Result<ToolResult> answer = run_checked(argv, options);
  if (!answer)
    return fail(ErrorKind::Tool, fmt::format("'{}' is not reached", named),
                fmt::format("{}: {}", answer.error().what, answer.error().why), by_hand);
  const std::vector<std::string> words = split_words(answer->output);
  if (words.size() != 3 || words[0] != "tilewright-runner")
    return fail(ErrorKind::Tool, fmt::format("'{}' is no runner", named),
                fmt::format("with --version it prints '{}'", answer->output.substr(0, 80)),
                "CMD ends with tilewright-runner, built for the device; a login there prints "
                "nothing\n" +
                    by_hand);
  if (words[1] != fleet::program_version())
    return fail(
        ErrorKind::Tool, fmt::format("'{}' is a runner of another version", named),
        fmt::format("it is {}, this is {}", words[1], fleet::program_version()),
        fmt::format("install tilewright-runner {} on the device", fleet::program_version()));
  Offer offer;
  offer.device = device;
  offer.target = words[2];
  offer.device_class = words[2];
  return offer;
}

/// No machine: its costs are the model's. Spaces for it are those of this machine's processor.
Result<Offer> model_of(const std::string& device) {
  TW_TRY(fleet::parse_model_device(device));
  Offer offer = processor();
  offer.device = device;
  offer.target = "model";
  offer.device_class = "model";
  offer.emulated = true;
  return offer;
}

Result<Offer> offer_of(const std::string& named, bool emulated) {
  const std::string device = TW_TRY(as_runner(named));
  if (device == "cpu") return emulated ? processor() : measured_processor();
  if (device.starts_with("model")) return model_of(device);
  if (is_runner(device)) return runner_of(named, device);
  return device_of(device);
}

/// What names of devices hold of it: neither commands nor the numbers of a model. What two workers
/// call the same is the same device: two boards must not be.
std::string kind_of(const std::string& named) {
  const std::string device = as_runner(named).value_or(named);
  if (device != named) return "ssh:" + named.substr(named.find_last_of(":@") + 1);
  if (is_runner(device))
    return fmt::format("runner-{}", sha256(fmt::format("{}", runner_command(device))).substr(0, 6));
  if (!device.starts_with("model")) return device;
  const uint64_t id = fleet::parse_model_device(device).value_or(fleet::ModelDevice()).id;
  return id == 0 ? "model" : fmt::format("model-{}", id);
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

Result<std::vector<Offer>> offers_of(const std::vector<std::string>& devices,
                                     const std::vector<std::string>& tags, bool emulated) {
  std::vector<Offer> offers;
  std::map<std::string, int> times;
  for (const std::string& device : devices) {
    Offer offer = TW_TRY(offer_of(device, emulated));
    const std::string kind = kind_of(device);
    const int n = times[kind]++;
    const std::string suffix = n == 0 ? "" : fmt::format("#{}", n + 1);
    offer.key = fmt::format("{}/{}{}", machine_id(), kind, suffix);
    offer.name = fmt::format("{}/{}{}", host_name(), kind, suffix);
    offer.tags = tags;
    offer.emulated |= emulated;
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace tilewright::driver
