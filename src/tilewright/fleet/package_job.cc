#include "tilewright/fleet/package_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/fleet/kept_caches.h"
#include "tilewright/fleet/sandbox.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

constexpr int kMostRuns = 10'000;  ///< their times have to fit into a reply
constexpr double kMostSeconds = 3600;
constexpr int64_t kMostOutputBytes = int64_t{1} << 30;
constexpr int64_t kMostResultBytes = 256 << 10;

/// Nobody waits for it to reach the disk: its reader is a child of this process.
Status write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (file << text && file.flush()) return {};
  return fail(ErrorKind::Io, fmt::format("cannot write {}", path), std::strerror(errno));
}

/// The runner's reply says that it did not run the package.
ItemResult refused(ItemResult result, const Json& reply) {
  result.outcome = "invalid";
  result.reason = reply.value("error", Json()).is_string() ? reply["error"].get<std::string>()
                                                           : "the runner said no reason";
  return result;
}

Status write_folder(const std::string& folder, const PackageRun& run, const JobTools& tools) {
  for (const std::string& piece : run.pieces)
    TW_TRY_STATUS(tools.append(piece, folder + "/model.twm"));
  for (const char* name : {"/inputs", "/outputs"}) {
    std::error_code error;
    std::filesystem::create_directory(folder + name, error);
    if (error) return fail(ErrorKind::Io, "cannot make a folder for a job", error.message());
  }
  for (size_t i = 0; i < run.inputs.size(); ++i)
    TW_TRY_STATUS(tools.append(run.inputs[i], fmt::format("{}/inputs/{}.npy", folder, i)));
  const Json job = {{"device", run.device}, {"threads", run.threads}, {"warmup", run.warmup},
                    {"runs", run.runs},     {"seconds", run.seconds}, {"profile", false}};
  return write_text(folder + "/job.json", json_text(job));
}

/// The outputs that `result` lists, sent to the submitter; their hashes in its order.
Result<Json> send_outputs(const std::string& folder, const Json& result, const JobTools& tools) {
  Json hashes = Json::array();
  int64_t sum = 0;
  for (size_t i = 0; i < result.at("outputs").size(); ++i) {
    const std::string bytes =
        TW_TRY(read_reply(folder, fmt::format("outputs/{}.npy", i), kMostOutputBytes - sum));
    sum += static_cast<int64_t>(bytes.size());
    const std::string hash = sha256(bytes);
    TW_TRY_STATUS(tools.put(hash, bytes));
    hashes.push_back(hash);
  }
  return hashes;
}

/// What makes two jobs runs of one open package: a process that ran a login's code is for no other.
std::string key_of(const LeasedJob& job, const PackageRun& run) {
  return json_text(Json{job.login, run.device, run.threads, run.pieces});
}

/// `result` as the store takes it, which refuses an item with longer texts. It counts a blank
/// behind each comma and colon.
ItemResult bounded(ItemResult result) {
  constexpr size_t kMostReason = 4096, kMostText = 64 << 10;
  result.reason.resize(std::min(result.reason.size(), kMostReason));
  const std::string text = json_text(result.output);
  const auto blanks =
      std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == ':'; });
  const size_t size = text.size() + static_cast<size_t>(blanks);
  if (size <= kMostText) return result;
  return {.outcome = "invalid",
          .reason = fmt::format("its answer has {} bytes, at most {} are kept", size, kMostText)};
}

class PackageServer final : public JobServer {
 public:
  PackageServer(RunChild child, AllowJob allow, PackageOpener open)
      : child_(std::move(child)), allow_(std::move(allow)), open_(std::move(open)) {}

  Status serve(const LeasedJob& job, JobPort& port) override {
    if (allow_) TW_TRY_STATUS(allow_(job, json_text(to_json(TW_TRY(package_run_of(job.payload))))));
    Result<ItemResult> result = open_.child ? run_open(job, port) : run_once(job, port);
    if (port.stop()) return {};  // how the child ended says nothing of the job
    port.add(bounded(TW_TRY(std::move(result))));
    return {};
  }

  void idle(double seconds) override {
    if (seconds > kKeptSeconds) package_.reset();
  }

 private:
  /// Its memory is wanted by others, too.
  static constexpr double kKeptSeconds = 60;

  Result<ItemResult> run_once(const LeasedJob& job, JobPort& port) {
    JobTools tools;
    tools.append = [&](const std::string& sha, const std::string& path) {
      return port.append(sha, path);
    };
    tools.put = [&](const std::string& sha, std::string_view bytes) {
      return port.put(sha, bytes);
    };
    tools.child = [&](const std::string& folder, double limit_s) {
      caches_.give(job.login, folder);
      Result<ToolResult> ended = child_(folder, limit_s, [&] { return port.stop(); });
      // One that crashed may have done so because of what it found there.
      if (ended && (ended->status == 0 || ended->timed_out || port.stop()))
        caches_.take(job.login, folder);
      return ended;
    };
    return run_package_job(job, tools);
  }

  Result<ItemResult> run_open(const LeasedJob& job, JobPort& port) {
    const PackageRun run = TW_TRY(package_run_of(job.payload));
    std::vector<std::string> inputs;
    for (const std::string& sha : run.inputs) inputs.push_back(TW_TRY(port.get(sha)));
    const Json how = {{"warmup", run.warmup}, {"runs", run.runs}, {"seconds", run.seconds}};
    for (;;) {
      const bool was_open = package_ != nullptr && key_ == key_of(job, run);
      if (!was_open) TW_TRY_STATUS(open_package(job, run, port));
      Result<OpenRun> ran = package_->run(how, inputs, job.limit_s, [&] { return port.stop(); });
      // One that could not open its package has nothing to stay for.
      if (!ran || ran->end.outcome != "ok" || !ran->reply.value("ok", false)) package_.reset();
      const OpenRun& known = TW_TRY(ran);
      // A process that stayed may have died of what ran before, or while nothing did.
      const std::string& end = known.end.outcome;
      if (!was_open || end == "ok" || end == "timeout" || port.stop())
        return result_of_open(known, port);
    }
  }

  Status open_package(const LeasedJob& job, const PackageRun& run, JobPort& port) {
    package_.reset();  // before another one needs memory
    const Json how = {{"device", run.device}, {"threads", run.threads}};
    if (open_.by_stream) {
      std::string package;
      for (const std::string& piece : run.pieces) package += TW_TRY(port.get(piece));
      package_ = TW_TRY(OpenPackage::start_by_stream(open_.child, how, std::move(package)));
    } else {
      package_ = TW_TRY(OpenPackage::start(open_.child, [&](const std::string& folder) -> Status {
        for (const std::string& piece : run.pieces)
          TW_TRY_STATUS(port.append(piece, folder + "/model.twm"));
        return write_text(folder + "/job.json", json_text(how));
      }));
    }
    key_ = key_of(job, run);
    return {};
  }

  static Result<ItemResult> result_of_open(const OpenRun& ran, JobPort& port) {
    if (ran.end.outcome != "ok")
      return ItemResult{.outcome = ran.end.outcome, .reason = ran.end.reason};
    ItemResult result;
    result.output["result"] = ran.reply;
    if (!ran.reply["ok"].get<bool>()) return refused(std::move(result), ran.reply);
    Json hashes = Json::array();
    for (const std::string& bytes : ran.outputs) {
      hashes.push_back(sha256(bytes));
      TW_TRY_STATUS(port.put(hashes.back().get<std::string>(), bytes));
    }
    result.outcome = "ok";
    result.output["outputs"] = std::move(hashes);
    return result;
  }

  RunChild child_;
  AllowJob allow_;
  PackageOpener open_;
  KeptCaches caches_;
  std::string key_;  ///< of package_
  std::unique_ptr<OpenPackage> package_;
};

}  // namespace

Json to_json(const PackageRun& run) {
  return {{"device", run.device}, {"threads", run.threads}, {"warmup", run.warmup},
          {"runs", run.runs},     {"seconds", run.seconds}, {"pieces", run.pieces},
          {"inputs", run.inputs}};
}

Result<PackageRun> package_run_of(const Json& json) {
  PackageRun run;
  try {
    run.device = json.at("device");
    run.threads = json.at("threads");
    run.warmup = json.at("warmup");
    run.runs = json.at("runs");
    run.seconds = json.at("seconds");
    json.at("pieces").get_to(run.pieces);
    json.at("inputs").get_to(run.inputs);
  } catch (const Json::exception& error) {
    return fail(ErrorKind::Package, "this job is none of kind run", error.what(),
                "submit it with the program that the worker has");
  }
  const auto beyond = [](auto value, auto most) { return !(value >= 0 && value <= most); };
  if (run.pieces.empty() || beyond(run.threads, 4096) || beyond(run.warmup, kMostRuns) ||
      beyond(run.runs, kMostRuns) || beyond(run.seconds, kMostSeconds))
    return fail(ErrorKind::Package, "this job is beyond what a worker does",
                fmt::format("at most {} runs and {} s, at least one piece of a package", kMostRuns,
                            kMostSeconds));
  return run;
}

Result<ItemResult> run_package_job(const LeasedJob& job, const JobTools& tools) {
  const PackageRun run = TW_TRY(package_run_of(job.payload));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  TW_TRY_STATUS(write_folder(folder.path(), run, tools));
  const ToolResult child = TW_TRY(tools.child(folder.path(), job.limit_s));
  const Result<std::string> text = read_reply(folder.path(), "result.json", kMostResultBytes);
  if (child.timed_out || !text) {
    const ChildEnd end = ending_of(child);
    return ItemResult{.outcome = end.outcome == "ok" ? "invalid" : end.outcome,
                      .reason = end.reason.empty() ? "it left no result.json" : end.reason};
  }
  // What a child writes is its submitter's data: it is read as such, and nothing is believed.
  ItemResult result;
  const Json reply = parse_json(*text, std::nothrow);
  if (!reply.is_object() || !reply.contains("ok") || !reply["ok"].is_boolean()) {
    result.outcome = "invalid";
    result.reason = "its result.json is none";
    return result;
  }
  result.output["result"] = reply;
  if (!reply["ok"].get<bool>()) return refused(std::move(result), reply);
  const Json listed = reply.value("outputs", Json());
  if (!listed.is_array() || listed.size() > 4096) {
    result.outcome = "invalid";
    result.reason = "its result.json lists no outputs";
    return result;
  }
  Result<Json> hashes = send_outputs(folder.path(), reply, tools);
  if (!hashes && hashes.error().kind == ErrorKind::Invalid) {
    result.outcome = "invalid";
    result.reason = hashes.error().what;
    return result;
  }
  result.outcome = "ok";
  result.output["outputs"] = TW_TRY(std::move(hashes));
  return result;
}

std::unique_ptr<JobServer> package_server(RunChild child, AllowJob allow, PackageOpener open) {
  return std::make_unique<PackageServer>(std::move(child), std::move(allow), std::move(open));
}

}  // namespace tilewright::fleet
