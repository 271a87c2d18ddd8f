#include "tilewright/records/lines.h"

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "tilewright/base/json.h"
#include "tilewright/records/workload.h"

namespace tilewright::records {
namespace {

/// Of the lines, not of any store. Fields were added since, none has another meaning: programs that
/// know fewer read the lines, too.
constexpr int kFormat = 1;

/// What a file of lines holds.
struct Lines {
  std::vector<Record> records;
  Workloads workloads;
};

/// Adds what one line says to `lines`. Throws what the line breaks.
void read_line(const std::string& line, Lines& lines) {
  const nlohmann::json json = parse_json(line);
  if (json.contains("func")) {
    const std::string func = json.at("func"), key = json.at("workload");
    if (workload_key(func) != key) throw std::runtime_error("the workload's key is wrong");
    lines.workloads.emplace(key, func);
    return;
  }
  if (json.contains("kernel")) return;  // a package's list of kernels
  Record record;
  const bool old = !json.contains("kind");
  for_each_field(record, [&](std::string_view name, auto& value) {
    const bool newer = name == "kind" || name == "machine" || name == "unit";
    if (!(old && newer)) json.at(std::string(name)).get_to(value);
  });
  if (old) complete_old(record);
  lines.records.push_back(std::move(record));
}

}  // namespace

std::string lines_header() {
  return json_text(nlohmann::ordered_json{{"format", "tilewright-records"}, {"v", kFormat}}) + "\n";
}

std::string line_of(const Record& record) {
  nlohmann::ordered_json json;
  for_each_field(
      record, [&](std::string_view name, const auto& value) { json[std::string(name)] = value; });
  return json_text(json) + "\n";
}

std::string workload_line(const std::string& key, const std::string& func) {
  return json_text(nlohmann::ordered_json{{"workload", key}, {"func", func}}) + "\n";
}

Result<std::string> export_lines(const Store& store, const RecordFilter& filter) {
  std::string text = lines_header();
  std::set<std::string> keys;
  std::string rows;
  TW_TRY_STATUS(store.each(filter, [&](const Record& record) {
    keys.insert(record.workload);
    rows += line_of(record);
  }));
  for (const std::string& key : keys)
    if (const Result<std::string> func = store.workload(key)) text += workload_line(key, *func);
  return text + rows;
}

Result<Imported> import_lines(Store& store, const std::string& text) {
  Imported counts;
  std::istringstream stream(text);
  std::string line;
  if (!std::getline(stream, line) || line.find("\"tilewright-records\"") == std::string::npos)
    return fail(ErrorKind::Parse, "this is not a file of tuning records",
                "its first line has no \"format\":\"tilewright-records\"",
                "tilewright records export writes such files");
  Lines lines;
  for (int number = 2; std::getline(stream, line); ++number) {
    try {
      read_line(line, lines);
    } catch (const std::exception& problem) {
      if (counts.broken++ == 0)
        counts.first_problem = fmt::format("line {}: {}", number, problem.what());
    }
  }
  counts.added = TW_TRY(store.add_all(lines.records, lines.workloads));
  counts.known = static_cast<int64_t>(lines.records.size()) - counts.added;
  return counts;
}

Result<Imported> merge(Store& store, const Store& other) {
  Workloads workloads;
  TW_TRY_STATUS(other.each_workload(
      [&](const std::string& key, const std::string& func) { workloads.emplace(key, func); }));
  const std::vector<Record> records = TW_TRY(other.find({}));
  Imported counts;
  counts.added = TW_TRY(store.add_all(records, workloads));
  counts.known = static_cast<int64_t>(records.size()) - counts.added;
  return counts;
}

}  // namespace tilewright::records
