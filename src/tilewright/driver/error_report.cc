#include "tilewright/driver/error_report.h"

#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

/// The node in a place such as `model.onnx: node 'Conv_3'`; empty if it names none.
std::string node_in(const std::string& place) {
  constexpr std::string_view kMark = "node '";
  const size_t mark = place.find(kMark);
  if (mark == place.npos) return "";
  const size_t begin = mark + kMark.size();
  return place.substr(begin, place.find('\'', begin) - begin);
}

nlohmann::ordered_json problem_json(const Error& error) {
  return {{"kind", std::string(name(error.kind))},
          {"what", error.what},
          {"place", error.place},
          {"why", error.why},
          {"fix", error.fix},
          {"node", node_in(error.place)}};
}

}  // namespace

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage:
      return "usage";
    case ErrorKind::Parse:
      return "parse";
    case ErrorKind::Invalid:
      return "invalid";
    case ErrorKind::NotApplicable:
      return "not-applicable";
    case ErrorKind::Unsupported:
      return "unsupported";
    case ErrorKind::Capacity:
      return "capacity";
    case ErrorKind::Device:
      return "device";
    case ErrorKind::Mismatch:
      return "mismatch";
    case ErrorKind::Package:
      return "package";
    case ErrorKind::Io:
      return "io";
    case ErrorKind::Tool:
      return "tool";
    case ErrorKind::Limit:
      return "limit";
    case ErrorKind::Interrupted:
      return "interrupted";
  }
  return "internal";
}

nlohmann::ordered_json error_json(const Error& error) {
  nlohmann::ordered_json json = document("error");
  json["code"] = exit_code(error.kind);
  json.update(problem_json(error));
  json["problems"] = nlohmann::ordered_json::array({problem_json(error)});
  for (const Error& other : error.others) json["problems"].push_back(problem_json(other));
  return json;
}

int report_error(const Error& error, bool as_json) {
  tell(to_string(error));
  if (as_json) print_json(error_json(error));
  return end_stdout(exit_code(error.kind));
}

}  // namespace tilewright::driver
