#include "tilewright/fleet/package_job.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/fleet/sandbox.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

constexpr int kMostRuns = 10'000;  ///< their times have to fit into a reply
constexpr double kMostSeconds = 3600;
constexpr int64_t kMostOutputBytes = int64_t{1} << 30;
constexpr int64_t kMostResultBytes = 256 << 10;

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
  return write_file(folder + "/job.json", job.dump());
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

class PackageServer final : public JobServer {
 public:
  explicit PackageServer(RunChild child) : child_(std::move(child)) {}

  Status serve(const LeasedJob& job, JobPort& port) override {
    JobTools tools;
    tools.append = [&](const std::string& sha, const std::string& path) {
      return port.append(sha, path);
    };
    tools.put = [&](const std::string& sha, std::string_view bytes) {
      return port.put(sha, bytes);
    };
    tools.child = [&](const std::string& folder, double limit_s) {
      return child_(folder, limit_s, [&] { return port.stop(); });
    };
    Result<ItemResult> result = run_package_job(job, tools);
    if (port.stop()) return {};  // how the child ended says nothing of the job
    port.add(TW_TRY(std::move(result)));
    return {};
  }

 private:
  RunChild child_;
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
  const Json reply = Json::parse(*text, nullptr, false);
  if (!reply.is_object() || !reply.contains("ok") || !reply["ok"].is_boolean()) {
    result.outcome = "invalid";
    result.reason = "its result.json is none";
    return result;
  }
  result.output["result"] = reply;
  if (!reply["ok"].get<bool>()) {
    result.outcome = "invalid";
    result.reason = reply.value("error", Json()).is_string() ? reply["error"].get<std::string>()
                                                             : "the runner said no reason";
    return result;
  }
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

std::unique_ptr<JobServer> package_server(RunChild child) {
  return std::make_unique<PackageServer>(std::move(child));
}

}  // namespace tilewright::fleet
