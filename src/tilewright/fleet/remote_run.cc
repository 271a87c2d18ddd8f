#include "tilewright/fleet/remote_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/npy.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/blobs.h"
#include "tilewright/fleet/package_job.h"
#include "tilewright/fleet/signed_job.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

/// The submitter asks at once after 5 ms, then less and less often.
constexpr double kLookFirst = .005, kLookLongest = .25;
constexpr double kFullPause = 1;  ///< units: s; until it tries again to get into a full queue
constexpr double kSayEvery = 4;   ///< units: s

/// Uploads what the store lacks of a job's files, and names them all in the job.
Status upload(Client& client, const std::vector<Piece>& files, Job& job, RemoteResult& result) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < files.size(); ++i) places.emplace(files[i].sha256, i);
  std::vector<std::string> hashes;
  for (const auto& [hash, place] : places) hashes.push_back(hash);
  const std::set<std::string> whole = TW_TRY(whole_blobs(client, hashes));
  for (const auto& [hash, place] : places) {
    if (whole.count(hash) == 0) {
      TW_TRY_STATUS(check_piece(files[place]));
      result.uploaded_bytes += TW_TRY(put_blob(client, hash, files[place].bytes));
    }
    job.blobs.push_back({hash, fmt::format("file {}", place)});
  }
  return {};
}

/// Uploads what the job needs, and describes it.
Result<Job> prepared(Client& client, const Selected& on, const RemoteRequest& request,
                     RemoteResult& result) {
  const auto begin = SteadyClock::now();
  Job job;
  job.id = new_uuid();
  job.kind = "run";
  job.pool = on.devices.at(0).pool;
  job.device_class = on.device_class;
  if (request.by_name) job.device = on.devices[0].name;
  job.needs = request.tags;
  job.band = 0;
  job.limit_s = request.limit_s;
  PackageRun run;
  run.device = request.device;
  run.threads = request.threads;
  run.warmup = request.warmup;
  run.runs = request.runs;
  run.seconds = request.seconds;
  std::vector<Piece> all = TW_TRY(cut_package(request.package, request.members));
  for (const Piece& piece : all) run.pieces.push_back(piece.sha256);
  std::vector<std::string> files;
  files.reserve(request.inputs.size());
  for (const Array& input : request.inputs) {
    files.push_back(TW_TRY(npy_bytes(input)));
    all.push_back({sha256(files.back()), files.back()});
    run.inputs.push_back(all.back().sha256);
  }
  TW_TRY_STATUS(upload(client, all, job, result));
  job.payload = to_json(run);
  if (request.key != nullptr)
    job.signature = TW_TRY(sign_job(*request.key, job, json_text(job.payload), std::time(nullptr)));
  result.upload_ms = 1e3 * seconds_since(begin);
  return job;
}

/// Makes the run and puts the job into the queue; one that is full of the login's own jobs is
/// waited for. errors: Limit (as long as `wait_s`), those of the client.
Status submit(Client& client, const std::string& run, const Job& job, const RemoteRequest& request,
              const Waiting& waiting, const Stop& stop) {
  const std::string jobs = json_text(Json::array({to_json(job)}));
  bool told = false;
  for (const auto begin = SteadyClock::now();;) {
    const Result<Json> answer = client.call("submit_run", {run, request.command, jobs});
    const double waited = seconds_since(begin);
    if (answer) {
      for (const Json& warning : answer->value("warnings", Json::array()))
        if (waiting) waiting("warning: " + warning.get<std::string>());
      return {};
    }
    const bool too_long = request.wait_s > 0 && waited >= request.wait_s;
    if (answer.error().kind != ErrorKind::Limit || too_long || stop())
      return tl::unexpected<Error>(answer.error());
    if (waiting)
      waiting(fmt::format("{}the queue is full: {}",
                          std::exchange(told, true) ? "" : "note: ", answer.error().what));
    client.wait(kFullPause);
  }
}

/// Devices of the selection as they are now; as they were, if the store does not say.
std::vector<Device> as_they_are(Client& client, const Selected& on) {
  std::vector<Device> now;
  for (const Device& device : list_devices(client).value_or(std::vector<Device>()))
    if (std::any_of(on.devices.begin(), on.devices.end(),
                    [&](const Device& before) { return before.name == device.name; }))
      now.push_back(device);
  return now.empty() ? on.devices : now;
}

/// Why a job waits, for people.
std::string waits_for(Client& client, const Selected& on) {
  const std::vector<Device> devices = as_they_are(client, on);
  const std::string none = why_none(devices);
  if (!none.empty()) return none;
  return fmt::format("waiting for one of {} devices of class {}", devices.size(), on.device_class);
}

/// Looks at the job until it is over.
Result<JobState> wait_for(Client& client, const std::string& run, const std::string& job,
                          const Selected& on, const RemoteRequest& request, const Waiting& waiting,
                          const Stop& stop, RemoteResult& result) {
  const auto begin = SteadyClock::now();
  const double away = client.away();
  double pause = kLookFirst, told = 0, ticked = 0;
  bool leased = false;
  for (;;) {
    std::vector<JobState> states =
        TW_TRY(states_of(TW_TRY(client.call("look", {run, json_text(Json{{job, 0}})}))));
    // Nobody could take it while the store was away.
    const double waited = seconds_since(begin) - (client.away() - away);
    if (states.empty())
      return fail(ErrorKind::Package, "the store does not know the job that it took", job,
                  "tilewright fleet check");
    if (!leased && states[0].state != "waiting" && states[0].state != "ready") {
      leased = true;
      result.wait_ms = 1e3 * waited;
    }
    if (states[0].over()) return std::move(states[0]);
    const bool too_long = !leased && request.wait_s > 0 && waited >= request.wait_s;
    if (too_long || stop()) {
      (void)client.call("cancel", {run});
      if (!too_long) return fail(ErrorKind::Interrupted, "interrupted", "the job is cancelled");
      return fail(ErrorKind::Limit, fmt::format("no device took the job within {:.0f} s", waited),
                  waits_for(client, on), "a longer --wait, or start a worker");
    }
    if (waited - told >= kSayEvery && waiting) {
      waiting(leased ? fmt::format("running on {}", states[0].device) : waits_for(client, on));
      told = waited;
    }
    if (waited - ticked >= 1) {  // leases of workers that died end by this
      (void)client.call("tick", {});
      ticked = waited;
    }
    client.wait(pause);
    pause = std::min(1.5 * pause, kLookLongest);
  }
}

/// The error of a job that gave no result.
tl::unexpected<Error> refusal(const JobState& state) {
  if (state.state == "failed")
    return fail(ErrorKind::Package, fmt::format("{} did not take the job", state.device),
                state.reason, "tilewright fleet log shows what happened");
  if (state.results.empty())
    return fail(state.state == "cancelled" ? ErrorKind::Interrupted : ErrorKind::Device,
                fmt::format("the job is {}", state.state), state.reason,
                "tilewright fleet log shows what happened");
  const ItemResult& item = state.results[0];
  const ErrorKind kind =
      item.outcome == "timeout" || item.outcome == "oom" ? ErrorKind::Limit : ErrorKind::Device;
  return fail(kind, fmt::format("{} did not run it: {}", state.device, item.outcome), item.reason);
}

/// Whether bytes that the job needs were found damaged in the store: these are forgotten there, so
/// that they are sent anew. errors: those of the client.
Result<bool> forget_damaged(Client& client, const Job& job) {
  bool damaged = false;
  for (const BlobName& blob : job.blobs)
    damaged |= TW_TRY(client.call("blob_check", {blob.sha256})) == false;
  return damaged;
}

Status read_result(Client& client, const ItemResult& item, RemoteResult& result) {
  try {
    const Json& reply = item.output.at("result");
    const Json &listed = reply.at("outputs"), &hashes = item.output.at("outputs");
    result.open_ms = reply.value("open_ms", 0.);
    reply.at("run_ns").get_to(result.run_ns);
    for (size_t i = 0; i < listed.size(); ++i) {
      const std::string name = listed.at(i).at("name"), hash = hashes.at(i);
      const std::string bytes = TW_TRY(get_blob(client, hash));
      result.outputs.push_back({name, TW_TRY(parse_npy(bytes, name))});
    }
  } catch (const Json::exception& error) {
    return fail(ErrorKind::Package, "the worker's answer is not as expected", error.what(),
                "a worker of this program's version");
  }
  return {};
}

}  // namespace

Result<std::vector<Device>> list_devices(Client& client) {
  return devices_of(TW_TRY(client.call("devices", {})));
}

Result<RemoteResult> run_remotely(Client& client, const Selected& on, const RemoteRequest& request,
                                  const Waiting& waiting, const Stop& stop) {
  RemoteResult result;
  result.device_class = on.device_class;
  const std::string run = new_uuid();
  client.listen("fleet_" + run);  // the store tells of an urgent job's end there
  JobState state;
  for (bool again = false;; again = true) {
    const Job job = TW_TRY(prepared(client, on, request, result));
    TW_TRY_STATUS(submit(client, run, job, request, waiting, stop));
    state = TW_TRY(wait_for(client, run, job.id, on, request, waiting, stop, result));
    if (again || state.state != "failed" || !TW_TRY(forget_damaged(client, job))) break;
    if (waiting) waiting("note: the store had damaged bytes of the package: it is sent once more");
  }
  result.device = state.device;
  result.worker = state.worker;
  if (state.state != "done" || state.results.empty() || state.results[0].outcome != "ok")
    return refusal(state);
  TW_TRY_STATUS(read_result(client, state.results[0], result));
  client.tell("close_run", {run});
  return result;
}

}  // namespace tilewright::fleet
