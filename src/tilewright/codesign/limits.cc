#include "tilewright/codesign/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "tilewright/base/names.h"

namespace tilewright::codesign {
namespace {

constexpr std::string_view kObjectives[] = {"latency", "power",  "peak_power",
                                            "area",    "energy", "edp"};
constexpr std::string_view kLimitUnits[] = {"cycles", "s", "mW", "um2", "share", "J", "Js"};

struct UnitName {
  std::string_view text;
  LimitUnit unit;
  double factor;
};
constexpr UnitName kTime[] = {{"cycles", LimitUnit::Cycles, 1},
                              {"s", LimitUnit::Seconds, 1},
                              {"ms", LimitUnit::Seconds, 1e-3},
                              {"us", LimitUnit::Seconds, 1e-6}};
constexpr UnitName kPower[] = {{"W", LimitUnit::Milliwatts, 1e3}, {"mW", LimitUnit::Milliwatts, 1}};
constexpr UnitName kAreaUnits[] = {{"mm2", LimitUnit::SquareMicrometres, 1e6},
                                   {"um2", LimitUnit::SquareMicrometres, 1},
                                   {"%", LimitUnit::Share, 0.01},
                                   {"share", LimitUnit::Share, 1}};
constexpr UnitName kEnergy[] = {
    {"J", LimitUnit::Joules, 1}, {"mJ", LimitUnit::Joules, 1e-3}, {"uJ", LimitUnit::Joules, 1e-6}};
constexpr UnitName kEdpUnits[] = {{"Js", LimitUnit::JouleSeconds, 1},
                                  {"mJs", LimitUnit::JouleSeconds, 1e-3},
                                  {"uJs", LimitUnit::JouleSeconds, 1e-6}};

std::vector<UnitName> units_of(Objective objective) {
  switch (objective) {
    case Objective::Latency:
      return {std::begin(kTime), std::end(kTime)};
    case Objective::Power:
    case Objective::PeakPower:
      return {std::begin(kPower), std::end(kPower)};
    case Objective::Area:
      return {std::begin(kAreaUnits), std::end(kAreaUnits)};
    case Objective::Energy:
      return {std::begin(kEnergy), std::end(kEnergy)};
    case Objective::Edp:
      return {std::begin(kEdpUnits), std::end(kEdpUnits)};
  }
  return {};
}

}  // namespace

std::string_view name(Objective objective) { return kObjectives[static_cast<size_t>(objective)]; }
std::string_view name(LimitUnit unit) { return kLimitUnits[static_cast<size_t>(unit)]; }

Result<Limit> parse_limit(const std::string& objective, const std::string& text) {
  const std::vector<std::string> known(std::begin(kObjectives), std::end(kObjectives));
  size_t which = 0;
  while (which < known.size() && known[which] != objective) ++which;
  if (which == known.size()) {
    std::string fix = did_you_mean(objective, known);
    if (fix.empty()) fix = fmt::format("it is one of {}", fmt::join(known, ", "));
    return fail(ErrorKind::Usage, fmt::format("`{}` cannot be limited", objective), {}, fix);
  }
  Limit limit;
  limit.objective = static_cast<Objective>(which);
  const size_t digits = text.find_first_not_of("0123456789.eE+-");
  const std::string number = text.substr(0, digits);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  const bool whole = !number.empty() && *end == '\0' && value > 0 && std::isfinite(value);
  std::string unit = digits == text.npos ? "" : text.substr(digits);
  if (const size_t first = unit.find_first_not_of(' '); first != unit.npos) unit.erase(0, first);
  std::vector<std::string_view> names;
  for (const UnitName& one : units_of(limit.objective)) {
    names.push_back(one.text);
    limit.unit = one.unit;
    limit.value = value * one.factor;
    if (one.text == unit && whole && limit.value > 0 && std::isfinite(limit.value)) return limit;
  }
  return fail(ErrorKind::Usage,
              fmt::format("`{}` is no limit of {}: it is a positive number and one of {}", text,
                          objective, fmt::join(names, ", ")));
}

std::string example_limit(const std::string& objective) {
  for (size_t i = 0; i < std::size(kObjectives); ++i)
    if (kObjectives[i] == objective)
      return fmt::format("2{}", units_of(static_cast<Objective>(i))[0].text);
  return "";
}

std::string to_string(const Limit& limit) {
  return fmt::format("{:.12g} {}", limit.value, name(limit.unit));
}

}  // namespace tilewright::codesign
