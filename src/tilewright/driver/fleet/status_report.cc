#include "tilewright/driver/fleet/status_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "tilewright/base/json.h"
#include "tilewright/driver/cli.h"

namespace tilewright::driver {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// `kind measure, n 8`: an object's members one after the other; anything else as it is.
std::string members(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return json_text(value);
  std::vector<std::string> parts;
  for (const auto& [name, member] : value.items())
    parts.push_back(fmt::format("{} {}", name, members(member)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// A member as people read it; nothing where it is null or not there.
std::string shown(const nlohmann::json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number_float()) return fmt::format("{:.0f}", found->get<double>());
  if (found->is_array()) {
    std::vector<std::string> parts;
    for (const nlohmann::json& part : *found) parts.push_back(members(part));
    return fmt::format("{}", fmt::join(parts, " "));
  }
  return members(*found);
}

/// `5 s`, `3 min`, `2 h`
std::string ago(const nlohmann::json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_number()) return "";
  const double seconds = found->get<double>();
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.0f} h", seconds / 3600);
}

Rows device_rows(const nlohmann::json& devices) {
  Rows rows = {{"device", "class", "state", "who", "until", "tags", "last heard", "detail"}};
  for (const nlohmann::json& row : devices)
    rows.push_back({shown(row, "name"), shown(row, "class"), shown(row, "state"),
                    shown(row, "login_of_lease"), ago(row, "ends_s"), shown(row, "tags"),
                    ago(row, "seen_s"), shown(row, "reason")});
  return rows;
}

Rows queue_rows(const nlohmann::json& queues) {
  Rows rows = {{"class", "pool", "ready", "waiting", "leased", "oldest"}};
  for (const nlohmann::json& row : queues)
    rows.push_back({shown(row, "class"), shown(row, "pool"), shown(row, "ready"),
                    shown(row, "waiting"), shown(row, "leased"), ago(row, "oldest_s")});
  return rows;
}

Rows run_rows(const nlohmann::json& runs) {
  Rows rows = {{"run", "who", "ready", "waiting", "leased", "command"}};
  for (const nlohmann::json& row : runs)
    rows.push_back({shown(row, "id"), shown(row, "login"), shown(row, "ready"),
                    shown(row, "waiting"), shown(row, "leased"), shown(row, "command")});
  return rows;
}

}  // namespace

Result<std::string> status_text(const nlohmann::json& status) {
  if (!status.is_object() || !status.contains("devices"))
    return fail(ErrorKind::Package, "the store's status is not as expected", {},
                "tilewright fleet check");
  std::string all;
  const Rows devices = device_rows(status["devices"]);
  all += devices.size() > 1 ? table(devices)
                            : "no devices: tilewright worker --device cpu offers this machine\n";
  if (const Rows queues = queue_rows(status.value("queues", nlohmann::json::array()));
      queues.size() > 1)
    all += "\n" + table(queues);
  if (const Rows runs = run_rows(status.value("runs", nlohmann::json::array())); runs.size() > 1)
    all += "\n" + table(runs);
  return all;
}

std::string events_text(const nlohmann::json& events) {
  Rows rows = {{"when", "what", "job", "device", "login", "note"}};
  for (const nlohmann::json& row : events)
    rows.push_back({shown(row, "at"), shown(row, "what"), shown(row, "job"), shown(row, "device"),
                    shown(row, "login"), shown(row, "note")});
  return table(rows);
}

std::string answer_text(const nlohmann::json& answer) {
  if (!answer.is_object()) return json_text(answer) + "\n";
  std::string lines;
  for (const auto& [name, value] : answer.items()) {
    if (name == "facts") continue;  // what compilers read of a device: a page of text
    const std::string line = shown(answer, name.c_str());
    if (!line.empty()) lines += fmt::format("{}: {}\n", name, line);
  }
  return lines;
}

}  // namespace tilewright::driver
