#include "tilewright/driver/report/launch_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    nlohmann::ordered_json launch = {{"name", name}, {"cycles", record->cycles()}};
    if (record->cycles() > 0 && record->clock_mhz() > 0)
      launch["ms"] = static_cast<double>(record->cycles()) / (record->clock_mhz() * 1e3);
    launch["counters"] = counts_json(counters);
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

namespace {

/// What becomes of a launch in a file of this name.
using Drawing = std::optional<std::string> (*)(const compile::LaunchRecord&, const std::string&);

/// One file for each launch on a simulator; `what`: for messages, `instead`: what has a picture.
Status write_pictures(const std::string& path, const compile::LaunchLog& log, const char* what,
                      const std::string& instead, Drawing picture) {
  bool written = false;
  for (const auto& [name, record] : log.entries) {
    if (record->counters().empty()) continue;
    const std::string timed = compile::timed_device(compile::backend_name(record->device()));
    const std::string on_timed = timed.empty() ? "" : "--device " + timed;
    const std::optional<std::string> text = picture(*record, path);
    if (!text && record->cycles() > 0) {
      // Not every device that counts cycles has a picture of them.
      const std::string without = timed == record->device() ? "leave it out" : on_timed;
      return fail(ErrorKind::Usage, fmt::format("there is no {} of {}", what, record->device()), {},
                  !instead.empty() && record->trace() ? instead : without);
    }
    if (!text)
      return fail(ErrorKind::Usage,
                  fmt::format("{} keeps no time, so there is no {}", record->device(), what), {},
                  on_timed);
    TW_TRY_STATUS(write_file(log.entries.size() == 1 ? path : path + "." + name, *text));
    written = true;
  }
  if (written) return {};
  std::vector<std::string> timed;  // the first of each back-end
  for (const compile::DeviceEntry& device : compile::all_devices())
    if (compile::timed_device(device.target) == device.row.id) timed.push_back(device.row.id);
  return fail(ErrorKind::Usage, fmt::format("there is no {} of this run", what),
              "nothing ran on a device that counts cycles",
              fmt::format("--device {}", fmt::join(timed, ", ")));
}

/// A file that is no .svg is a page with the picture in it.
std::string page_of(const std::string& file, std::string svg) {
  if (file.ends_with(".svg")) return svg;
  return "<!doctype html>\n<meta charset=\"utf-8\">\n<title>" + file +
         "</title>\n<body style=\"margin:0\">\n" + svg + "\n</body>\n";
}

}  // namespace

Status write_trace(const std::string& path, const compile::LaunchLog& log) {
  return write_pictures(path, log, "trace", "",
                        [](const compile::LaunchRecord& record,
                           const std::string& file) -> std::optional<std::string> {
                          const std::optional<accel::RunTrace> trace = record.trace();
                          if (!trace) return std::nullopt;
                          return accel::trace_file(file, *trace);
                        });
}

Status write_timeline(const std::string& path, const compile::LaunchLog& log) {
  return write_pictures(path, log, "timeline", "--trace F.json, for ui.perfetto.dev",
                        [](const compile::LaunchRecord& record,
                           const std::string& file) -> std::optional<std::string> {
                          std::optional<std::string> svg = record.timeline();
                          if (!svg) return std::nullopt;
                          return page_of(file, *std::move(svg));
                        });
}

}  // namespace tilewright::driver
