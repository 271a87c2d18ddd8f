// What travels through the queue: devices, jobs and their results, as values and as the JSON of the
// schema's functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::fleet {

/// A device as a worker offers it.
struct Offer {
  std::string key;     ///< which device of the world: `site/host/cpu`; the same at each start
  std::string name;    ///< for people, unique: `desk/cpu`
  std::string device;  ///< what runs there: `cpu`, `vta:tsim`, `runner:CMD`
  /// Devices of one class give comparable times: `cpu:znver4@1a2b3c4d`, `vta:tsim`.
  std::string device_class;
  std::string target;             ///< what --target compiles for it: `cpu`, `vta`, `aarch64`
  std::string target_file;        ///< the same as a file's text (TOML); empty: `target` is a name
  std::vector<std::string> tags;  ///< `lab`, `site=berlin`
  bool emulated = false;          ///< its times mean nothing
  std::string rates = {};         ///< that were measured, as JSON (hw/rates.h); empty: none
};

/// A device as users see it.
struct Device {
  std::string name, pool, device_class, target, target_file, device;
  std::vector<std::string> tags;
  bool emulated = false;
  std::string state;   ///< `free`, `leased`, `off`, `suspect`
  std::string reason;  ///< of `off` and `suspect`
  std::string host, program, holder;
  double seen_s = 0;    ///< since its worker was last heard of
  std::string held_by;  ///< only this login's jobs go there; empty: everybody's
  double held_s = 0;    ///< for so long still
};

/// Bytes that a job needs, by their hash.
struct BlobName {
  std::string sha256, name;
};

/// A job to submit.
struct Job {
  std::string id = {};
  std::string kind;  ///< `run`, `measure`, `race`
  std::string pool;
  std::optional<std::string> device_class;
  std::optional<std::string> device;  ///< by name; else any of the class
  std::vector<std::string> needs;     ///< tags
  std::string compiler = {};          ///< that the worker has; empty: any
  int band = 1;                       ///< 0: urgent, 1: normal, 2: batch
  nlohmann::json payload;
  double limit_s = 600;
  int items = 1;
  std::vector<BlobName> blobs;
  std::string key = {};        ///< equal for jobs that need the same thing loaded; empty: nothing
  std::string signature = {};  ///< signed_job.h; empty: none
};

/// A job as its worker gets it.
struct LeasedJob {
  std::string id, kind, login;
  nlohmann::json payload;
  double limit_s = 0;
  int items = 0, next = 0;
  std::vector<BlobName> blobs;
  std::string signature = {};  ///< as of Job
};

struct Lease {
  int64_t device = 0, token = 0;
  double seconds = 0;
  std::vector<LeasedJob> jobs;
};

/// What became of one item of a job. `outcome`: as of records::Record.
struct ItemResult {
  int item = 0;
  std::string outcome, reason;
  double cost = 0;
  nlohmann::json output;
  double least = 0, spread = 0;  ///< of a measurement, as in records::Record
  int64_t readings = 0;          ///< 0: none
  double fastest = 0;            ///< as of measure::Reading
};

/// A job as its submitter sees it.
struct JobState {
  std::string id;
  std::string state;  ///< `waiting`, `ready`, `leased`, `done`, `failed`, `dead`, `cancelled`
  std::string reason, device, worker;
  std::vector<ItemResult> results;  ///< from the one asked for
  bool over() const { return state != "waiting" && state != "ready" && state != "leased"; }
};

nlohmann::json to_json(const Offer& offer);
nlohmann::json to_json(const Job& job);
nlohmann::json to_json(const ItemResult& result);
// errors: Package, with what is missing: the store holds something else than this program expects.
Result<std::vector<Device>> devices_of(const nlohmann::json& json);
Result<Lease> lease_of(const nlohmann::json& json, int64_t device);
Result<std::vector<JobState>> states_of(const nlohmann::json& json);

}  // namespace tilewright::fleet
