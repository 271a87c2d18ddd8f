// tilewright-runner FOLDER: a package is run by whoever made the folder, who reads what it leaves.
//
//   job.json            {"device": "cpu", "threads": 2, "warmup": 1, "runs": 3, "seconds": 0.5}
//   model.twm
//   inputs/0.npy ...    one file per input, by its position in the package
//
// leaves outputs/0.npy ... and result.json:
//
//   {"ok": true, "open_ms": 1.9, "first_ns": 71200, "run_ns": [65100, 64800, 65000],
//    "outputs": [{"name": "y", "dtype": "f32", "shape": [1, 10]}]}
//   {"ok": false, "kind": "invalid", "error": "input 0 ('x') is missing"}
//
// `first_ns` is the time of the very first run, warm-up or not. Where job.json asks for a profile,
// `steps` has the times of each step over all runs.
#include "tilewright/runner/main/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "tilewright/base/file.h"
#include "tilewright/base/npy.h"
#include "tilewright/runner/main/job.h"
#include "tilewright/runner/main/session.h"

namespace tilewright::runner {
namespace {

using Clock = std::chrono::steady_clock;

int64_t ns_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

/// A new file, which nobody waits for to reach the disk: its reader is on this machine.
Status write_new(const std::string& path, std::string_view bytes) {
  const auto error = [&] {
    return fail(ErrorKind::Io, fmt::format("cannot write '{}'", path), std::strerror(errno));
  };
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return error();
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return error();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      auto failed = error();
      ::close(fd);
      return failed;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return ::close(fd) == 0 ? Status{} : error();
}

/// A regular file of the job; anything else could keep its reader waiting for ever.
Result<std::string> read_regular(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return fail(ErrorKind::Invalid, fmt::format("'{}' is no regular file", name));
  return read_file(path);
}

/// Every file of inputs/ must be meant for an input. errors: Invalid.
Status check_input_files(const std::string& folder, const PackageSession& session) {
  const std::unique_ptr<DIR, int (*)(DIR*)> files(::opendir((folder + "/inputs").c_str()),
                                                  ::closedir);
  if (files == nullptr) return {};  // those that are missing are told one by one
  while (const dirent* entry = ::readdir(files.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool known = false;
    for (size_t i = 0; i < session.inputs().size() && !known; ++i)
      known = name == fmt::format("{}.npy", i);
    if (!known)
      return fail(ErrorKind::Invalid, fmt::format("'inputs/{}' is for no input", name),
                  fmt::format("the package has {}", session.inputs().size()));
  }
  return {};
}

Status set_inputs(const std::string& folder, PackageSession& session) {
  TW_TRY_STATUS(check_input_files(folder, session));
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    const std::string file = fmt::format("inputs/{}.npy", i);
    if (::access((folder + "/" + file).c_str(), F_OK) != 0)
      return fail(ErrorKind::Invalid,
                  fmt::format("input {} ('{}') is missing", i, session.inputs()[i].name),
                  fmt::format("there is no file '{}'", file));
    const std::string bytes = TW_TRY(read_regular(folder, file));
    TW_TRY_STATUS(session.set_input(i, TW_TRY(parse_npy(bytes, file))));
  }
  return {};
}

Result<int64_t> timed_run(PackageSession& session) {
  const Clock::time_point begin = Clock::now();
  TW_TRY_STATUS(session.run());
  return ns_since(begin);
}

/// Writes outputs/ and describes them.
Result<Json> write_outputs(const std::string& folder, const PackageSession& session) {
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    return fail(ErrorKind::Io, fmt::format("cannot make '{}'", folder), std::strerror(errno));
  Json outputs = Json::array();
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const Array value = TW_TRY(session.output(i));
    TW_TRY_STATUS(write_new(fmt::format("{}/{}.npy", folder, i), TW_TRY(npy_bytes(value))));
    outputs.push_back(describe_output(session, i, value));
  }
  return outputs;
}

Json describe(const std::vector<Step>& steps) {
  Json list = Json::array();
  for (const Step& step : steps)
    list.push_back({{"name", step.name},
                    {"callee", step.callee},
                    {"calls", step.calls},
                    {"total_ns", step.total_ns},
                    {"min_ns", step.min_ns},
                    {"last_ns", step.last_ns}});
  return list;
}

Result<Json> run_job(const std::string& folder) {
  const RunnerJob job = TW_TRY(parse_job(TW_TRY(read_regular(folder, "job.json"))));
  double open_ms = 0;
  PackageSession session = TW_TRY(open_package(folder, job, open_ms));
  TW_TRY_STATUS(set_inputs(folder, session));
  const Times times = TW_TRY(run_times(session, job));
  Json result = {{"ok", true},
                 {"open_ms", open_ms},
                 {"first_ns", times.first_ns},
                 {"run_ns", times.run_ns},
                 {"outputs", TW_TRY(write_outputs(folder + "/outputs", session))}};
  if (job.profile) result["steps"] = describe(TW_TRY(session.steps()));
  return result;
}

}  // namespace

Result<PackageSession> open_package(const std::string& folder, const RunnerJob& job,
                                    double& open_ms) {
  const Clock::time_point begin = Clock::now();
  PackageSession session = TW_TRY(PackageSession::open(
      folder + "/model.twm", job.device == "cpu" ? "" : job.device, job.threads));
  open_ms = static_cast<double>(ns_since(begin)) * 1e-6;
  for (const TensorName& output : session.outputs())
    if (output.dtype == DType::BF16)  // told before the time is spent
      return fail(ErrorKind::Unsupported, fmt::format("output '{}' is bf16", output.name),
                  "a .npy file cannot hold it", "cast the output to f32");
  return session;
}

Result<Times> run_times(PackageSession& session, const RunnerJob& job) {
  Times times;
  for (int i = 0; i < job.warmup; ++i) {
    const int64_t ns = TW_TRY(timed_run(session));
    if (i == 0) times.first_ns = ns;
  }
  const Clock::time_point begin = Clock::now();
  const auto go_on = [&] {
    const auto done = static_cast<int>(times.run_ns.size());
    if (done < std::max(job.runs, 1)) return true;
    return done < kMostRuns && static_cast<double>(ns_since(begin)) < job.seconds * 1e9;
  };
  while (go_on()) times.run_ns.push_back(TW_TRY(timed_run(session)));
  if (job.warmup == 0) times.first_ns = times.run_ns.front();
  return times;
}

Json describe_output(const PackageSession& session, size_t index, const Array& value) {
  return {{"name", session.outputs()[index].name},
          {"dtype", name(value.dtype())},
          {"shape", value.shape()}};
}

JobFailure failure_of(const Error& error) {
  std::string text = to_string(error).substr(std::strlen("error: "));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  switch (error.kind) {
    case ErrorKind::Unsupported:
      return {TW_UNSUPPORTED, "unsupported", text};
    case ErrorKind::Device:
      return {TW_DEVICE, "device", text};
    case ErrorKind::Package:
      return {TW_PACKAGE, "package", text};
    case ErrorKind::Io:
      return {TW_IO, "io", text};
    case ErrorKind::Capacity:
      return {TW_MEMORY, "memory", text};
    default:
      return {TW_INVALID, "invalid", text};
  }
}

Json failure_json(const JobFailure& failure) {
  return {{"ok", false}, {"kind", failure.kind}, {"error", failure.text}};
}

tl::expected<Json, JobFailure> guarded(const std::function<Result<Json>()>& job) {
  try {
    Result<Json> result = job();
    if (!result) return tl::unexpected(failure_of(result.error()));
    return *std::move(result);
  } catch (const std::bad_alloc&) {
    return tl::unexpected(JobFailure{TW_MEMORY, "memory", "no memory"});
  } catch (const std::exception& error) {
    return tl::unexpected(JobFailure{TW_INTERNAL, "internal", error.what()});
  }
}

Result<int> run_folder(const std::string& folder) {
  const std::string file = folder + "/result.json";
  if (::unlink(file.c_str()) != 0 && errno != ENOENT)  // of an earlier run: this one may not end
    return fail(ErrorKind::Io, fmt::format("cannot write '{}'", file), std::strerror(errno));
  tl::expected<Json, JobFailure> result = guarded([&] { return run_job(folder); });
  int code = TW_OK;
  if (!result) {
    const JobFailure& failure = result.error();
    std::fprintf(stderr, "error: %s\n", failure.text.c_str());
    code = failure.code;
    result = failure_json(failure);
  }
  // Names are what the package says they are, UTF-8 or not.
  const std::string text =
      result->dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
  TW_TRY_STATUS(write_new(file, text));
  return code;
}

}  // namespace tilewright::runner
