#include "tilewright/driver/fleet/remote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/base/file.h"
#include "tilewright/driver/command_line/amount.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/offers.h"
#include "tilewright/driver/fleet/store_url.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/postgres/connection.h"

namespace tilewright::driver {
namespace {

/// Whether a device's processor is like this machine's: code for the one is code for the other.
bool is_this_processor(const fleet::Device& device) {
  return device.device == "cpu" &&
         device.device_class == fmt::format("cpu:{}@{}", hw::host().cpu, hw::host().machine);
}

}  // namespace

void add_worker_options(Verb verb, WorkerChoice& choice) {
  verb.add_option("--worker", choice.workers,
                  "run on a device of the fleet: cpu:znver4, vta:tsim, name=DEVICE, tag=TAG, any");
  add_waiting_options(verb, choice);
}

void add_waiting_options(Verb verb, WorkerChoice& choice) {
  verb.add_option("--wait", choice.wait, "give up if no device is free after so long: 5m");
  verb.add_option("--sign", choice.sign,
                  "sign what runs there with the key in this file (`tilewright fleet keygen`)");
  verb.needs("--wait", "--worker");
  verb.needs("--sign", "--worker");
}

Result<RemoteDevice> find_remote(const WorkerChoice& choice, const std::string& spec,
                                 const std::string& store, const fleet::Need& need) {
  RemoteDevice device;
  device.spec = spec;
  const fleet::DeviceSpec parsed = TW_TRY(fleet::parse_spec(spec));
  device.tags = parsed.tags;
  if (!choice.wait.empty()) device.wait_s = TW_TRY(parse_seconds("--wait", choice.wait, "5m"));
  device.limit_s = choice.limit_s;
  if (!choice.sign.empty())
    device.key = std::make_shared<fleet::SigningKey>(TW_TRY(fleet::SigningKey::load(choice.sign)));
  fleet::Patience patience;
  patience.seconds = choice.patience_s;
  patience.stop = interrupted;
  patience.waiting = [](double waited, const Error& error) {
    say(fmt::format("the store does not answer ({:.0f} s): {}", waited, error.what));
  };
  const std::string url = TW_TRY(fleet_store(postgres::is_url(store) ? store : std::string()));
  device.client = choice.again ? fleet::Client::reopen(url, patience)
                               : TW_TRY(fleet::Client::open(url, patience));
  device.selected =
      TW_TRY(fleet::select_devices(parsed, TW_TRY(fleet::list_devices(*device.client)), need));
  if (!device.selected.others.empty())
    say(fmt::format("note: '{}' fits several classes: {} is taken, not {}", spec,
                    device.selected.device_class, fmt::join(device.selected.others, ", ")));
  return device;
}

Result<SubjectOptions> for_device(const SubjectOptions& options, const RemoteDevice& device,
                                  const TemporaryFolder& folder) {
  SubjectOptions there = options;
  there.elsewhere = true;
  const fleet::Device& first = device.selected.devices.at(0);
  // The class of a GPU: `opencl:pthread-skylake, OpenCL 3.0, 2 units, 16 GiB`.
  if (hw::find_gpu_target(compile::backend_name(first.device)))
    there.gpu = first.device_class.substr(first.device_class.find(':') + 1);
  if (options.target != "cpu") return there;  // the user's choice
  if (is_this_processor(first)) return there;
  if (first.target_file.empty()) {
    there.target = first.target;
    return there;
  }
  there.target = folder.file("target.toml");
  TW_TRY_STATUS(write_file(there.target, first.target_file));
  return there;
}

Result<RemotePackage> remote_package(const Subject& subject, const SubjectOptions& options,
                                     const RemoteDevice& device, const TemporaryFolder& folder) {
  RemotePackage remote;
  std::string path = subject.path;
  if (!subject.package) {
    path = folder.file("model.twm");
    const compile::CompileOptions compile = TW_TRY(compile_options(options));
    TW_TRY_STATUS(compile::save_package(path, TW_TRY(compile_subject(subject, compile))));
  }
  remote.file = TW_TRY(map_file(path));
  runtime::OpenOptions open;
  open.load_code = false;
  remote.package = TW_TRY(runtime::Package::open(remote.file, path, open));
  const runtime::Program& program = remote.package->program();
  remote.inputs = input_types(program, subject);
  for (const int id : program.outputs)
    remote.outputs.push_back(program.values[static_cast<size_t>(id)].name);
  const fleet::Device& first = device.selected.devices.at(0);
  if (!program.launches.empty()) remote.device = first.device;
  for (const auto& [name, launch] : program.launches)
    if (compile::backend_name(first.device) != launch.device)
      return fail(
          ErrorKind::Package,
          fmt::format("'{}' does not run on devices of class {}", subject.name,
                      device.selected.device_class),
          fmt::format("its code is for {}", launch.device),
          fmt::format("--worker {}:..., or compile it for {}", launch.device, first.target));
  return remote;
}

Result<fleet::RemoteResult> run_remote(RemoteDevice& device, const RemotePackage& package,
                                       const std::map<std::string, Array>& inputs,
                                       const SubjectOptions& options, const Repeats& repeats,
                                       const std::string& command) {
  fleet::RemoteRequest request;
  request.command = command;
  request.package = {package.file.bytes.data(), package.file.bytes.size()};
  for (const runtime::PackageMember& member : package.package->members())
    if (!member.sha256.empty()) request.members.push_back({member.sha256, member.bytes});
  for (const InputType& input : package.inputs) request.inputs.push_back(inputs.at(input.name));
  request.device = package.device;
  request.threads = options.threads;
  request.warmup = repeats.warmup;
  request.runs = repeats.runs;
  request.seconds = repeats.seconds;
  request.limit_s = device.limit_s;
  request.wait_s = device.wait_s;
  request.key = device.key.get();
  request.tags = device.tags;
  request.by_name = device.spec.find("name=") != std::string::npos;
  Progress progress("fleet");
  return fleet::run_remotely(
      *device.client, device.selected, request,
      [&](const std::string& text) {
        const bool once = text.starts_with("warning: ") || text.starts_with("note: ");
        once ? say(text) : progress.show(text);
      },
      interrupted);
}

NamedArrays remote_outputs(const fleet::RemoteResult& result) {
  NamedArrays outputs;
  for (const fleet::RemoteOutput& output : result.outputs)
    outputs.emplace_back(output.name, output.value);
  return outputs;
}

nlohmann::ordered_json remote_json(const fleet::RemoteResult& result) {
  return {{"worker",
           {{"name", result.worker}, {"class", result.device_class}, {"device", result.device}}},
          {"wait_ms", result.wait_ms},
          {"upload_ms", result.upload_ms},
          {"uploaded_bytes", result.uploaded_bytes},
          {"open_ms", result.open_ms}};
}

}  // namespace tilewright::driver
