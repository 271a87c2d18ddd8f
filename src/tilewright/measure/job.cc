#include "tilewright/measure/job.h"

#include <fmt/format.h>

#include <optional>

#include "tilewright/base/json.h"
#include "tilewright/measure/evaluator.h"

namespace tilewright::measure {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json to_json(const T& object) {
  Json json = Json::object();
  for_each_field(
      object, [&](std::string_view name, const auto& value) { json[std::string(name)] = value; });
  return json;
}

std::string line_of(const Json& json) {
  // Texts of others may hold bytes that are no UTF-8.
  return json_text(json) + "\n";
}

tl::unexpected<Error> unreadable(std::string_view line, const std::string& why) {
  return fail(ErrorKind::Parse, "a message between processes cannot be read",
              fmt::format("{}: {}", why, line.substr(0, 200)));
}

template <class T>
Result<T> from_json(const Json& json, std::string_view line) {
  T object;
  try {
    for_each_field(object, [&](std::string_view name, auto& value) {
      json.at(std::string(name)).get_to(value);
    });
  } catch (const Json::exception& error) {
    return unreadable(line, error.what());
  }
  return object;
}

/// The alternative of Job called `name`.
template <size_t I = 0>
Result<Job> job_called(const std::string& name, const Json& json, std::string_view line) {
  if constexpr (I == std::variant_size_v<Job>) {
    return unreadable(line, fmt::format("no job is called '{}'", name));
  } else {
    using T = std::variant_alternative_t<I, Job>;
    if (name != T::name) return job_called<I + 1>(name, json, line);
    return Job(TW_TRY(from_json<T>(json, line)));
  }
}

}  // namespace

Reply reply_of(const Reading& reading) {
  Reply reply;
  reply.state = "done";
  reply.outcome = to_string(reading.kind);
  reply.reason = reading.reason;
  reply.cost = reading.cost;
  reply.least = reading.least;
  reply.spread = reading.spread;
  reply.readings = reading.readings;
  reply.fastest = reading.fastest;
  return reply;
}

Reading reading_of(const Reply& reply) {
  Reading reading;
  const std::optional<OutcomeKind> kind = outcome_kind(reply.outcome);
  reading.kind = kind.value_or(OutcomeKind::Lost);
  reading.reason = kind ? reply.reason : fmt::format("unknown outcome '{}'", reply.outcome);
  reading.cost = reply.cost;
  reading.least = reply.least;
  reading.spread = reply.spread;
  reading.readings = reply.readings;
  reading.fastest = reply.fastest;
  return reading;
}

std::string to_line(const Job& job) {
  return std::visit(
      [](const auto& one) {
        Json json = {{"job", one.name}};
        json.update(to_json(one));
        return line_of(json);
      },
      job);
}

std::string to_line(const Reply& reply) { return line_of(to_json(reply)); }

Result<Job> parse_job(std::string_view line) {
  const Json json = parse_ordered_json(line, std::nothrow);
  if (!json.is_object() || !json.contains("job") || !json["job"].is_string())
    return unreadable(line, "not a job");
  return job_called(json["job"].get<std::string>(), json, line);
}

Result<Reply> parse_reply(std::string_view line) {
  const Json json = parse_ordered_json(line, std::nothrow);
  if (!json.is_object()) return unreadable(line, "not a reply");
  return from_json<Reply>(json, line);
}

Result<int64_t> span_of(const Param& param) {
  int64_t span = 1, dense = 1;
  const std::vector<Expr>& shape = param.buffer.shape();
  for (size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = as_int(shape[axis]);
    const auto stride =
        param.strides.empty() ? std::optional<int64_t>(dense) : as_int(param.strides[axis]);
    if (!extent || !stride)
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} has sizes known only at run time", param.buffer.name()),
                  "a measurement needs them now");
    if (*extent == 0) return 0;
    int64_t way = 0;
    if (*extent < 0 || *stride < 0 || __builtin_mul_overflow(*extent - 1, *stride, &way) ||
        __builtin_add_overflow(span, way, &span) || __builtin_mul_overflow(dense, *extent, &dense))
      return fail(ErrorKind::Limit,
                  fmt::format("{} has more elements than can be counted", param.buffer.name()));
  }
  return span;
}

}  // namespace tilewright::measure
