#include "tilewright/driver/error_report.h"

#include <algorithm>

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

/// The operator of that node, which stands behind its name: `node 'Conv_3' (Conv)`.
std::string operator_in(const std::string& place) {
  const std::string before = "node '" + node_in(place) + "' (";
  const size_t mark = place.find(before);
  if (mark == place.npos) return "";
  const size_t begin = mark + before.size();
  return place.substr(begin, place.find(')', begin) - begin);
}

/// `text` without `part` at its beginning.
std::string behind(const std::string& text, const std::string& part) {
  return text.starts_with(part) ? text.substr(part.size()) : text;
}

/// What `place` says besides the file and the node: an attribute, a function around the node, ...
std::string rest_of(const std::string& place, const std::string& file) {
  const std::string inside = place == file ? "" : behind(place, file + ": ");
  std::string rest = behind(inside, "node '" + node_in(place) + "'");
  rest = behind(rest, " (" + operator_in(place) + ")");
  return behind(behind(rest, ": "), " in ");
}

/// Lines of at most `width` characters, broken at spaces; a longer word has its own line.
std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
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
    case ErrorKind::Unreachable:
      return "unreachable";
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

std::string problems_table(const Error& error, const std::string& file, size_t width) {
  std::vector<std::vector<std::string>> rows = {{"operator", "node", "place", "reason", "remedy"}};
  const auto add = [&](const Error& problem) {
    const std::string& place = problem.place;
    const std::string reason = problem.what + (problem.why.empty() ? "" : ": " + problem.why);
    std::vector<std::vector<std::string>> cells;
    for (const std::string& text :
         {operator_in(place), node_in(place), rest_of(place, file), reason, problem.fix})
      cells.push_back(wrapped(text.empty() ? "-" : text, width));
    size_t lines = 0;
    for (const auto& cell : cells) lines = std::max(lines, cell.size());
    for (size_t line = 0; line < lines; ++line) {
      std::vector<std::string>& row = rows.emplace_back();
      for (const auto& cell : cells) row.push_back(line < cell.size() ? cell[line] : "");
    }
  };
  add(error);
  for (const Error& other : error.others) add(other);
  return table(rows);
}

int report_error(const Error& error, bool as_json) {
  tell(to_string(error));
  if (as_json) print_json(error_json(error));
  return end_stdout(exit_code(error.kind));
}

}  // namespace tilewright::driver
