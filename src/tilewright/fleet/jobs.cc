#include "tilewright/fleet/jobs.h"

#include <fmt/format.h>

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

/// A member as a value; `fallback` where it is not there or null.
template <class T>
T member(const Json& json, const char* name, T fallback = {}) {
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? fallback : found->get<T>();
}

/// Calls `read`; what it throws about JSON of another form becomes an error.
template <class T, class Read>
Result<T> reading(const char* what, const Read& read) {
  try {
    return read();
  } catch (const Json::exception& error) {
    return fail(ErrorKind::Package, fmt::format("the store's {} is not as expected", what),
                error.what(), "tilewright fleet check");
  }
}

std::vector<BlobName> blobs_of(const Json& json) {
  std::vector<BlobName> blobs;
  for (const Json& blob : member(json, "blobs", Json::array()))
    blobs.push_back({blob.at("sha256"), blob.at("name")});
  return blobs;
}

Device device_of(const Json& json) {
  Device device;
  device.name = json.at("name");
  device.pool = json.at("pool");
  device.device_class = json.at("class");
  device.target = json.at("target");
  device.tags = member<std::vector<std::string>>(json, "tags");
  device.emulated = member(json, "emulated", false);
  device.state = json.at("state");
  device.reason = member<std::string>(json, "reason");
  device.host = member<std::string>(json, "host");
  device.program = member<std::string>(json, "program");
  device.holder = member<std::string>(json, "login_of_lease");
  device.seen_s = member(json, "seen_s", 0.);
  device.held_by = member<std::string>(json, "held_by");
  device.held_s = member(json, "held_s", 0.);
  const Json facts = member(json, "facts", Json::object());
  device.device = member<std::string>(facts, "device");
  device.target_file = member<std::string>(facts, "target_file");
  return device;
}

LeasedJob leased_of(const Json& json) {
  LeasedJob job;
  job.id = json.at("id");
  job.kind = json.at("kind");
  job.login = json.at("login");
  job.payload = json.at("payload");
  job.limit_s = json.at("limit_s");
  job.items = json.at("n");
  job.next = json.at("next");
  job.blobs = blobs_of(json);
  job.signature = member<std::string>(json, "signature");
  return job;
}

ItemResult result_of(const Json& json) {
  return {json.at("item"),
          json.at("outcome"),
          member<std::string>(json, "reason"),
          member(json, "cost", 0.),
          member(json, "output", Json()),
          member(json, "least", 0.),
          member(json, "spread", 0.),
          member(json, "readings", int64_t{0}),
          member(json, "fastest", 0.)};
}

}  // namespace

Json to_json(const Offer& offer) {
  return {{"key", offer.key},
          {"name", offer.name},
          {"class", offer.device_class},
          {"target", offer.target},
          {"tags", offer.tags},
          {"emulated", offer.emulated},
          // Not the command of a runner: it may tell what is nobody's business.
          {"facts",
           {{"device", offer.device.starts_with("runner:") ? "runner" : offer.device},
            {"target_file", offer.target_file}}},
          {"rates", Json::object()}};
}

Json to_json(const Job& job) {
  Json blobs = Json::array();
  for (const BlobName& blob : job.blobs)
    blobs.push_back({{"sha256", blob.sha256}, {"name", blob.name}});
  const auto optional = [](const std::optional<std::string>& text) {
    return text ? Json(*text) : Json();
  };
  return {{"id", job.id},
          {"kind", job.kind},
          {"pool", job.pool},
          {"class", optional(job.device_class)},
          {"needs", job.needs},
          {"device", optional(job.device)},
          {"compiler", optional(job.compiler.empty() ? std::nullopt : std::optional(job.compiler))},
          {"band", job.band},
          {"after", Json::array()},
          {"payload", job.payload},
          {"limit_s", job.limit_s},
          {"n", job.items},
          {"blobs", blobs},
          {"key", job.key.empty() ? Json() : Json(job.key)},
          {"signature", job.signature.empty() ? Json() : Json(job.signature)}};
}

Json to_json(const ItemResult& result) {
  const bool measured = result.outcome == "ok" && result.cost > 0;
  const auto number = [&](double value) { return measured ? Json(value) : Json(); };
  return {{"outcome", result.outcome},         {"reason", result.reason},
          {"cost", number(result.cost)},       {"least", number(result.least)},
          {"spread", number(result.spread)},   {"readings", result.readings},
          {"fastest", number(result.fastest)}, {"output", result.output}};
}

Result<std::vector<Device>> devices_of(const Json& json) {
  return reading<std::vector<Device>>("list of devices", [&] {
    std::vector<Device> devices;
    for (const Json& row : json) devices.push_back(device_of(row));
    return devices;
  });
}

Result<Lease> lease_of(const Json& json, int64_t device) {
  return reading<Lease>("lease", [&] {
    Lease lease{device, json.at("token"), json.at("seconds"), {}};
    for (const Json& job : json.at("jobs")) lease.jobs.push_back(leased_of(job));
    return lease;
  });
}

Result<std::vector<JobState>> states_of(const Json& json) {
  return reading<std::vector<JobState>>("answer about jobs", [&] {
    std::vector<JobState> states;
    for (const Json& row : json.at("jobs")) {
      JobState state{row.at("id"),
                     row.at("state"),
                     member<std::string>(row, "reason"),
                     member<std::string>(row, "device"),
                     member<std::string>(row, "worker"),
                     {}};
      for (const Json& result : member(row, "results", Json::array()))
        state.results.push_back(result_of(result));
      states.push_back(std::move(state));
    }
    return states;
  });
}

}  // namespace tilewright::fleet
