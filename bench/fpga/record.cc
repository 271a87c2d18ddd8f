#include "record.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tilewright/base/file.h"

namespace tilewright::bench {
namespace {

std::vector<std::string> parts_of(const std::string& line) {
  std::vector<std::string> parts;
  std::istringstream text(line);
  for (std::string part; std::getline(text, part, '\t');) parts.push_back(part);
  return parts;
}

}  // namespace

Result<Record> Record::open(const std::string& file) {
  Record record;
  record.file_ = file;
  if (file.empty() || !std::filesystem::exists(file)) return record;
  std::istringstream lines(TW_TRY(read_file(file)));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> parts = parts_of(line);
    // A run that was killed leaves half a line.
    if (parts.size() != 6 && !lines.eof())
      return fail(ErrorKind::Invalid, fmt::format("'{}' is no record", file), line);
    if (parts.size() == 6)
      record.all_[parts[0]] = {parts[1], std::atoll(parts[2].c_str()), std::atoll(parts[3].c_str()),
                               std::atof(parts[4].c_str()), parts[5]};
  }
  return record;
}

const Finding* Record::find(const std::string& name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

void Record::add(const std::string& name, const Finding& finding) {
  Finding& kept = all_[name] = finding;
  for (char& c : kept.text)
    if (c == '\n' || c == '\t') c = ' ';
  if (file_.empty()) return;
  std::ofstream out(file_, std::ios::app);
  out << fmt::format("{}\t{}\t{}\t{}\t{:.1f}\t{}\n", name, finding.type, finding.count,
                     finding.wrong, finding.seconds, kept.text);
}

}  // namespace tilewright::bench
