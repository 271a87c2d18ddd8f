#include "tilewright/driver/report/launch_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/file.h"
#include "tilewright/driver/cli.h"

namespace tilewright::driver {
namespace {

nlohmann::ordered_json counts_json(const std::vector<compile::Count>& counts) {
  nlohmann::ordered_json json;
  for (const compile::Count& count : counts) json[count.name] = count.value;
  return json;
}

}  // namespace

bool has_counts(const compile::LaunchLog& log) {
  return std::any_of(log.entries.begin(), log.entries.end(),
                     [](const auto& entry) { return !entry.record->counters().empty(); });
}

nlohmann::ordered_json launches_json(const compile::LaunchLog& log) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [name, record] : log.entries) {
    const std::vector<compile::Count> counters = record->counters();
    if (counters.empty()) continue;
    nlohmann::ordered_json launch = {
        {"name", name}, {"cycles", record->cycles()}, {"counters", counts_json(counters)}};
    for (const compile::LaunchLayer& layer : record->layers()) {
      nlohmann::ordered_json entry = {{"name", layer.name}};
      entry.update(counts_json(layer.cycles));
      entry["counters"] = counts_json(layer.counters);
      launch["layers"].push_back(std::move(entry));
    }
    json.push_back(std::move(launch));
  }
  return json;
}

std::string launches_table(const compile::LaunchLog& log) {
  // Launches with equal headings, those of one accelerator, share a table.
  std::vector<std::vector<std::vector<std::string>>> tables;
  const bool timed = std::any_of(log.entries.begin(), log.entries.end(),
                                 [](const auto& entry) { return entry.record->cycles() > 0; });
  if (!timed) return "";
  for (const auto& [name, record] : log.entries) {
    const std::vector<std::string> headings = record->headings();
    if (headings.empty()) continue;
    auto rows = std::find_if(tables.begin(), tables.end(),
                             [&](const auto& known) { return known[0] == headings; });
    if (rows == tables.end()) rows = tables.insert(rows, {headings});
    for (compile::LaunchLayer& layer : record->layers()) rows->push_back(std::move(layer.row));
    rows->push_back(record->row(name));
  }
  std::string text;
  for (const auto& rows : tables) text += (text.empty() ? "" : "\n") + table(rows);
  return text;
}

Status write_trace(const std::string& path, const compile::LaunchLog& log) {
  for (const auto& [name, record] : log.entries) {
    if (record->counters().empty()) continue;
    const std::optional<std::string> trace = record->trace();
    if (!trace) {
      const std::string timed = compile::timed_device(compile::backend_name(record->device()));
      return fail(ErrorKind::Usage, "this device keeps no time, so there is no trace", {},
                  timed.empty() ? "" : "--device " + timed);
    }
    const std::string file = log.entries.size() == 1 ? path : path + "." + name;
    TW_TRY_STATUS(write_file(file, *trace));
  }
  return {};
}

}  // namespace tilewright::driver
