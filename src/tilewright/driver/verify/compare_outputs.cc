#include "tilewright/driver/verify/compare_outputs.h"

#include <fmt/format.h>

namespace tilewright::driver {
namespace {

const Array* find(const Named& named, const std::string& name) {
  for (const auto& [key, value] : named)
    if (key == name) return &value;
  return nullptr;
}

}  // namespace

std::vector<Row> compare_outputs(const std::string& subject, const std::string& against,
                                 const Named& actual, const Named& reference,
                                 const CompareSettings& settings) {
  std::vector<Row> rows;
  for (const auto& [name, value] : actual) {
    Row row{subject, against, name, {}, {}, {}};
    if (const Array* expected = find(reference, name)) {
      const auto limit = settings.limits.find(name);
      row.difference = within(measure::compare(value, *expected, settings.math),
                              limit == settings.limits.end() ? RoundingLimit{} : limit->second);
    } else if (settings.required.contains(name)) {
      row.difference.problem = fmt::format("{} has no such output", against);
    } else {
      continue;
    }
    rows.push_back(std::move(row));
    if (settings.first_only && !rows.back().difference.ok()) return rows;
  }
  for (const std::string& name : settings.required) {
    if (find(actual, name) != nullptr) continue;
    rows.push_back({subject, against, name, {}, {}, {}});
    rows.back().difference.problem = "the compiled model has no such output";
  }
  return rows;
}

}  // namespace tilewright::driver
