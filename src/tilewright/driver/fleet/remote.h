// `--worker`: a model or package that runs on a device of the fleet instead of here.
//
// Example: `tilewright run M.onnx --worker cpu:znver4`. The device is chosen first: it decides what
// the model is compiled for. Then the package is made here, sent, run there, and its outputs come
// back as if they were local.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/process.h"
#include "tilewright/driver/inputs/outputs.h"
#include "tilewright/driver/subject.h"
#include "tilewright/fleet/device_spec.h"
#include "tilewright/fleet/remote_run.h"

namespace tilewright::driver {

/// Which device, and how long to wait for it.
struct WorkerChoice {
  std::vector<std::string> workers;  ///< `--worker SPEC`; empty: this machine
  std::string wait;                  ///< `5m`; empty: for ever
  std::string sign;                  ///< a file with the key that signs jobs; empty: none does
  double limit_s = 600;              ///< on the device
  double patience_s = 60;            ///< for a store that does not answer
  bool again = false;                ///< the store was there before: it is waited for at once
};
/// Adds `--worker`, `--wait` and `--sign`.
void add_worker_options(Verb verb, WorkerChoice& choice);
/// `--wait` and `--sign` alone.
void add_waiting_options(Verb verb, WorkerChoice& choice);

/// The devices that a SPEC selects, and the connection to their fleet.
struct RemoteDevice {
  std::string spec;
  std::unique_ptr<fleet::Client> client;
  fleet::Selected selected;
  std::vector<std::string> tags;                 ///< that the SPEC asks for
  std::shared_ptr<const fleet::SigningKey> key;  ///< null: jobs are not signed
  double wait_s = 0, limit_s = 600;
};
/// `store`: as `--store` names it; a file of records is none of a fleet.
/// errors: Usage, Unreachable, Device (nothing matches, or nothing that matches can do the work).
Result<RemoteDevice> find_remote(const WorkerChoice& choice, const std::string& spec,
                                 const std::string& store, const fleet::Need& need);

/// `options` for code that runs on `device`: its target, unless the user named one.
/// `folder`: where the description of the target is put. errors: Io.
Result<SubjectOptions> for_device(const SubjectOptions& options, const RemoteDevice& device,
                                  const TemporaryFolder& folder);

/// A subject as a package.
struct RemotePackage {
  MappedFile file;
  std::shared_ptr<const runtime::Package> package;  ///< to look at: its code is not loaded
  std::vector<InputType> inputs;
  std::vector<std::string> outputs;  ///< names, in order
  std::string device;                ///< that its launches are to run on; empty: any
};
/// errors: those of the compiler; Package (a package that is for another kind of device).
Result<RemotePackage> remote_package(const Subject& subject, const SubjectOptions& options,
                                     const RemoteDevice& device, const TemporaryFolder& folder);

/// Repetitions on the device.
struct Repeats {
  int warmup = 0, runs = 1;
  double seconds = 0;
};
/// errors: as fleet::run_remotely.
Result<fleet::RemoteResult> run_remote(RemoteDevice& device, const RemotePackage& package,
                                       const std::map<std::string, Array>& inputs,
                                       const SubjectOptions& options, const Repeats& repeats,
                                       const std::string& command);

NamedArrays remote_outputs(const fleet::RemoteResult& result);
/// `worker`, `wait_ms`, `upload_ms`, `open_ms` for a verb's document.
nlohmann::ordered_json remote_json(const fleet::RemoteResult& result);

}  // namespace tilewright::driver
