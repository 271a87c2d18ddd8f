#include "tilewright/fleet/measure/measure_job.h"

#include <fmt/format.h>

#include "tilewright/base/fields.h"
#include "tilewright/base/file.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostItems = 256;
constexpr int kMostThreads = 4096, kMostRounds = 1000;
constexpr double kMostSeconds = 600;

/// What the submitter says of every record of a job; the rest is the result's or the store's.
constexpr const char* kRecordFields[] = {"workload", "name", "kind",     "machine",
                                         "compiler", "unit", "searcher", "seed"};

bool is_shared(std::string_view name) {
  for (const char* field : kRecordFields)
    if (name == field) return true;
  return false;
}

Json to_json(const MeasuredKernel& kernel) {
  return {{"func", kernel.func}, {"target", kernel.target}, {"threads", kernel.threads}};
}

MeasuredKernel kernel_of(const Json& payload) {
  return {payload.at("func"), payload.at("target"), payload.at("threads")};
}

tl::unexpected<Error> no_job(const char* kind, const std::string& why) {
  return fail(ErrorKind::Package, fmt::format("this job is none of kind {}", kind), why,
              "submit it with the program that the worker has");
}

Status check_limits(const char* kind, const MeasuredKernel& kernel, size_t items, double limit_s) {
  if (kernel.threads < 1 || kernel.threads > kMostThreads || items == 0 || items > kMostItems ||
      !(limit_s > 0 && limit_s <= kMostSeconds))
    return no_job(kind, fmt::format("1 to {} threads, 1 to {} schedules, at most {} s for each",
                                    kMostThreads, kMostItems, kMostSeconds));
  return {};
}

}  // namespace

std::string kernel_key(const MeasuredKernel& kernel) {
  return sha256(fmt::format("{}\n{}\n{}", kernel.func, kernel.target, kernel.threads));
}

Json to_json(const MeasureRequest& request) {
  Json json = to_json(request.kernel);
  json["anchor"] = request.anchor;
  json["anchor_cost"] = request.anchor_cost;
  json["best_cost"] = request.best_cost;
  json["limit_s"] = request.limit_s;
  Json& record = json["record"] = Json::object();
  for_each_field(request.record, [&](std::string_view name, const auto& value) {
    if (is_shared(name)) record[std::string(name)] = value;
  });
  Json& items = json["candidates"] = Json::array();
  for (const MeasureItem& item : request.items)
    items.push_back({{"schedule", item.schedule}, {"point", item.point}, {"prior", item.prior}});
  return json;
}

Json to_json(const RaceRequest& request) {
  Json json = to_json(request.kernel);
  json["schedules"] = request.schedules;
  json["rounds"] = request.rounds;
  json["limit_s"] = request.limit_s;
  if (!request.priors.empty()) {
    json["priors"] = request.priors;
    json["points"] = request.points;
  }
  return json;
}

Result<MeasureRequest> measure_request_of(const Json& payload) {
  MeasureRequest request;
  try {
    request.kernel = kernel_of(payload);
    request.anchor = payload.at("anchor");
    request.anchor_cost = payload.at("anchor_cost");
    request.best_cost = payload.at("best_cost");
    request.limit_s = payload.at("limit_s");
    const Json& record = payload.at("record");
    for_each_field(request.record, [&](std::string_view name, auto& value) {
      if (is_shared(name)) record.at(std::string(name)).get_to(value);
    });
    for (const Json& item : payload.at("candidates"))
      request.items.push_back({item.at("schedule"), item.at("point"), item.at("prior")});
  } catch (const Json::exception& error) {
    return no_job("measure", error.what());
  }
  TW_TRY_STATUS(check_limits("measure", request.kernel, request.items.size(), request.limit_s));
  if (!(request.anchor_cost >= 0 && request.best_cost >= 0) ||
      request.anchor.empty() != (request.anchor_cost == 0))
    return no_job("measure", "an anchor has a cost above 0");
  return request;
}

Result<RaceRequest> race_request_of(const Json& payload) {
  RaceRequest request;
  try {
    request.kernel = kernel_of(payload);
    payload.at("schedules").get_to(request.schedules);
    request.rounds = payload.at("rounds");
    request.limit_s = payload.at("limit_s");
    if (payload.contains("priors")) {
      payload.at("priors").get_to(request.priors);
      payload.at("points").get_to(request.points);
    }
  } catch (const Json::exception& error) {
    return no_job("race", error.what());
  }
  TW_TRY_STATUS(check_limits("race", request.kernel, request.schedules.size(), request.limit_s));
  if (request.rounds < 1 || request.rounds > kMostRounds)
    return no_job("race", fmt::format("1 to {} rounds", kMostRounds));
  if (!request.priors.empty() && (request.priors.size() != request.schedules.size() ||
                                  request.points.size() != request.schedules.size()))
    return no_job("race", "a prior and a point for each schedule, or none");
  return request;
}

}  // namespace tilewright::fleet
