#include "tilewright/runner/main/job.h"

#include <fmt/format.h>

#include <cmath>

#include "tilewright/base/json.h"

namespace tilewright::runner {
namespace {

using Json = nlohmann::json;

constexpr int kMostThreads = 4096;
constexpr int kMostWarmup = 1'000'000;
constexpr double kMostSeconds = 86'400;

tl::unexpected<Error> bad(std::string why) {
  return fail(ErrorKind::Invalid, "job.json cannot be used", std::move(why));
}

Status read_int(const Json& value, const std::string& name, int least, int most, int& into) {
  // As a double: integers of JSON may be larger than any type here.
  if (!value.is_number_integer() || value.get<double>() < least || value.get<double>() > most)
    return bad(fmt::format("'{}' is a whole number from {} to {}", name, least, most));
  into = value.get<int>();
  return {};
}

Status read_field(const std::string& name, const Json& value, RunnerJob& job) {
  if (name == "threads") return read_int(value, name, 0, kMostThreads, job.threads);
  if (name == "warmup") return read_int(value, name, 0, kMostWarmup, job.warmup);
  if (name == "runs") return read_int(value, name, 0, kMostRuns, job.runs);
  if (name == "seconds") {
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= kMostSeconds))
      return bad(fmt::format("'seconds' is a number from 0 to {}", kMostSeconds));
    job.seconds = value.get<double>();
    return {};
  }
  if (name == "profile") {
    if (!value.is_boolean()) return bad("'profile' is true or false");
    job.profile = value.get<bool>();
    return {};
  }
  if (name == "device") {
    if (!value.is_string()) return bad("'device' is a text");
    job.device = value.get<std::string>();
    return {};
  }
  return bad(fmt::format("'{}' is none of device, threads, warmup, runs, seconds, profile", name));
}

}  // namespace

Result<RunnerJob> parse_job(std::string_view text) {
  const Json json = parse_json(text, std::nothrow);
  if (!json.is_object()) return bad("it is no JSON object");
  RunnerJob job;
  for (const auto& [name, value] : json.items()) TW_TRY_STATUS(read_field(name, value, job));
  return job;
}

}  // namespace tilewright::runner
