// A package that runs on a device of the fleet, as its submitter sees it.
//
// Example: `run_remotely` uploads what the store lacks of a package and its inputs, submits one job
// for a class of devices, waits for it, and returns outputs and times as if they were local.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/fleet/client.h"
#include "tilewright/fleet/device_spec.h"
#include "tilewright/fleet/keys.h"
#include "tilewright/fleet/package_pieces.h"

namespace tilewright::fleet {

struct RemoteRequest {
  std::string command;         ///< as typed: shown by `fleet status`
  std::string_view package;    ///< the bytes of a .twm
  std::vector<Piece> members;  ///< of `package`: what its manifest says of them
  std::vector<Array> inputs;
  std::string device;  ///< of the package: `vta:tsim`; empty: what the worker offers
  int threads = 0, warmup = 0, runs = 1;
  double seconds = 0;
  double limit_s = 600;             ///< on the device, once it began
  double wait_s = 0;                ///< for a device; 0: for ever
  std::vector<std::string> tags;    ///< that the device has
  bool by_name = false;             ///< only the first device of the selection
  const SigningKey* key = nullptr;  ///< that signs the job; null: it is not signed
};

struct RemoteOutput {
  std::string name;
  Array value;
};

struct RemoteResult {
  std::string worker, device, device_class;
  std::vector<RemoteOutput> outputs;
  std::vector<double> run_ns;  ///< of each timed run
  double upload_ms = 0, wait_ms = 0, open_ms = 0;
  int64_t uploaded_bytes = 0;
};

/// While it waits: told every few seconds what it waits for, and what happens once (`warning: ...`,
/// `note: ...`).
using Waiting = std::function<void(const std::string& text)>;
/// True: give up, and cancel the job.
using Stop = std::function<bool()>;

/// errors: Limit (nobody took it in time, or it ran too long), Device (no such device; the package
/// does not run there), Interrupted, Package, Unreachable.
Result<RemoteResult> run_remotely(Client& client, const Selected& on, const RemoteRequest& request,
                                  const Waiting& waiting, const Stop& stop);

/// The devices that there are. errors: those of the client.
Result<std::vector<Device>> list_devices(Client& client);

}  // namespace tilewright::fleet
