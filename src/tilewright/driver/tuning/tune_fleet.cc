// Tuning on devices of a fleet (`tune --worker`): which devices, what code for them is like, and
// whole models that run there.
//
// Example: `tune M.onnx --worker cpu:znver4`. The class decides the target, so the model is planned
// for it here, candidates are measured there (fleet/measure/remote_measurer.h), and at the end the
// untuned and the tuned package run on one of the devices in turn.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/file.h"
#include "tilewright/base/statistics.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/device_need.h"
#include "tilewright/driver/report/roof.h"
#include "tilewright/driver/tuning/tune_run.h"
#include "tilewright/driver/tuning/tuned.h"

namespace tilewright::driver {
namespace {

constexpr int kTurns = 5;  ///< of each form of a model
/// Of the least time that a machine's measured rates allow: a cost below it is none.
constexpr double kPlausible = 0.5;
/// Per candidate behind a runner, which may be an emulator: under qemu-aarch64 on two busy cores,
/// 15 of 16 candidates for lenet5's first convolution were not over after the 5 s of processors.
constexpr double kRunnerSeconds = 30;

/// The speeds of a class as one of its workers measured them, if `target` can have them.
std::optional<hw::CpuRates> rates_of_class(fleet::Client& client, const std::string& name,
                                           const hw::CpuTarget& target) {
  constexpr int kMostFmaPerCycle = 4;  ///< of any processor
  const Result<nlohmann::json> known = client.call("class_rates", {name});
  if (!known || !known->is_object()) return std::nullopt;
  const Result<hw::CpuRates> rates = hw::rates_of_other(known->dump());
  if (!rates || !rates->measured) return std::nullopt;
  // A worker's numbers are believed as far as they can be checked.
  const hw::Contradiction wrong =
      hw::contradiction(*rates, target.vector_bytes, target.cores, kMostFmaPerCycle);
  if (wrong.text.empty()) {
    say(fmt::format("note: spaces follow the speeds that a worker of {} measured", name));
    return *rates;
  }
  say(
      fmt::format("warning: the speeds of {} in the store cannot be right ({}): typical ones are "
                  "assumed",
                  name, wrong.text));
  return std::nullopt;
}

void join_devices(fleet::Selected& into, const std::vector<fleet::Device>& devices) {
  for (const fleet::Device& device : devices)
    if (std::none_of(into.devices.begin(), into.devices.end(),
                     [&](const fleet::Device& other) { return other.name == device.name; }))
      into.devices.push_back(device);
}

}  // namespace

/// The devices that --worker names, and from then on their target. errors: Usage, Device,
/// Unsupported, Unreachable.
Status TuneRun::find_devices() {
  const WorkerChoice& choice = settings_.remote;
  if (choice.workers.empty()) return {};
  if (!on_device())
    return fail(ErrorKind::Usage, "devices of a fleet measure, and nothing else does",
                fmt::format("--measure {}", settings_.measure), "leave one of them out");
  bool by_class = true;
  for (const std::string& spec : choice.workers) {
    RemoteDevice found = TW_TRY(
        find_remote(choice, spec, settings_.subject.records, measuring_need(settings_.subject)));
    const fleet::DeviceSpec parsed = TW_TRY(fleet::parse_spec(spec));
    if (choice.workers.size() == 1) tags_ = parsed.tags;
    by_class = by_class && parsed.name.empty() && (parsed.tags.empty() || !tags_.empty());
    if (!remote_) {
      remote_ = std::move(found);
    } else if (remote_->selected.device_class == found.selected.device_class) {
      join_devices(remote_->selected, found.selected.devices);
    } else {
      return fail(ErrorKind::Usage, "times of different classes of devices cannot be compared",
                  fmt::format("{} is {}, {} is {}", choice.workers[0],
                              remote_->selected.device_class, spec, found.selected.device_class),
                  "tune for each class by itself");
    }
  }
  if (!by_class)
    for (const fleet::Device& device : remote_->selected.devices) names_.push_back(device.name);
  folder_.emplace(TW_TRY(TemporaryFolder::create()));
  settings_.subject = TW_TRY(for_device(settings_.subject, *remote_, *folder_));
  return {};
}

/// Records of the class carry its machine, which files of targets leave out; threads are as many as
/// its cores; spaces follow the speeds that a worker of the class has measured, if one has.
void TuneRun::take_class() {
  if (!remote_) return;
  auto* cpu = std::get_if<hw::CpuTarget>(&compile_.target.special);
  if (cpu == nullptr || looks_here()) return;
  const std::string& name = remote_->selected.device_class;
  const size_t machine = name.find('@');
  if (machine != std::string::npos) cpu->machine = name.substr(machine + 1);
  if (settings_.subject.threads == 0) settings_.subject.threads = compile_.threads = cpu->cores;
  if (const auto rates = rates_of_class(*remote_->client, name, *cpu)) cpu->rates = *rates;
}

/// Whether code for the target runs on this processor, and takes as long as on the devices.
bool TuneRun::looks_here() const {
  if (!on_device() || target().simulated) return false;
  const hw::CpuTarget& host = hw::host();
  return !remote_ ||
         remote_->selected.device_class == fmt::format("cpu:{}@{}", host.cpu, host.machine);
}

Status TuneRun::open_fleet() {
  fleet::RemoteMeasuring measuring;
  measuring.command = settings_.command;
  measuring.compiler = compiler_key();
  measuring.searcher = settings_.method;
  measuring.seed = settings_.subject.seed;
  if (target().measuring != nullptr) measuring.limit_s = target().measuring(compile_).limit_seconds;
  if (remote_->selected.devices.at(0).device.starts_with("runner:"))
    measuring.limit_s = kRunnerSeconds;
  measuring.wait_s = remote_->wait_s;
  measuring.needs = tags_;
  measuring.names = names_;
  measuring.stop = [] { return driver::interrupted(); };
  measuring.say = [](const std::string& line) { say(line); };
  if (compile_.target.cpu() != nullptr && compile_.cpu().rates.measured)
    measuring.least = [](const measure::Task& task) {
      const std::optional<Roof> roof = roof_of(task);
      if (!roof) return 0.;
      // What fits into L2 may be in L1, of which the roof knows nothing.
      return kPlausible * (roof->level == "l2" ? roof->compute : roof->limit());
    };
  fleet::Client* client = remote_->client.get();
  client->set_patience({});  // the measurer waits by itself
  auto made = std::make_unique<fleet::RemoteMeasurer>(
      [client](const std::string& function, const std::vector<std::string>& texts) {
        return client->call(function, {texts.begin(), texts.end()});
      },
      remote_->selected, std::move(measuring));
  fleet_ = made.get();
  measurer_ = std::move(made);
  return {};
}

/// One form of a model as a package for the devices.
Result<RemotePackage> TuneRun::packed(const Subject& of, const compile::CompiledModel& compiled,
                                      const std::string& file) const {
  Subject subject;
  subject.name = of.name;
  subject.path = folder_->file(file);
  TW_TRY_STATUS(compile::save_package(subject.path, compiled));
  runtime::OpenOptions open;
  open.load_code = false;
  subject.package = TW_TRY(runtime::Package::open(subject.path, open));
  RemotePackage package = TW_TRY(remote_package(subject, settings_.subject, *remote_, *folder_));
  package.inputs = input_types(package.package->program(), of);
  return package;
}

/// Two forms of a model, in turn on one device, several short turns each: so a slow moment hits
/// both.
Result<Duel> TuneRun::duel_there(const Subject& subject, const compile::CompiledModel& before,
                                 const compile::CompiledModel& after) const {
  const RemotePackage packages[] = {TW_TRY(packed(subject, before, "before.twm")),
                                    TW_TRY(packed(subject, after, "after.twm"))};
  const std::map<std::string, Array> inputs =
      TW_TRY(make_inputs(packages[0].inputs, {}, settings_.subject.seed));
  const std::vector<fleet::Device>& devices = fleet_->on().devices;
  const auto on = std::find_if(devices.begin(), devices.end(), [&](const fleet::Device& device) {
    return fleet_->used().contains(device.name) && device.state != "off" &&
           device.state != "suspect";
  });
  const std::string name = on != devices.end() ? on->name : devices.at(0).name;
  WorkerChoice choice = settings_.remote;
  if (choice.wait.empty()) choice.wait = "60s";
  choice.patience_s = records::GroupedAdds::kPatience;
  choice.again = true;
  RemoteDevice device = TW_TRY(find_remote(choice, "name=" + name, fleet_url(), {}));
  std::vector<double> medians[2];
  const Repeats repeats{1, 2, duel_seconds() / (2 * kTurns)};
  for (int turn = 0; turn < kTurns; ++turn)
    for (const size_t form : {0, 1}) {
      const fleet::RemoteResult result = TW_TRY(run_remote(
          device, packages[form], inputs, settings_.subject, repeats, settings_.command));
      medians[form].push_back(median(result.run_ns));
    }
  return Duel{median(medians[0]), median(medians[1]), {}, {}};
}

}  // namespace tilewright::driver
