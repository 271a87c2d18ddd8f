#include "tilewright/driver/command_line/amount.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

namespace tilewright::driver {

Result<std::pair<double, std::string>> parse_amount(const std::string& option,
                                                    const std::string& text,
                                                    const std::string& example) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0))
    return fail(ErrorKind::Usage,
                fmt::format("{} '{}' is no positive number with a unit", option, text), {},
                fmt::format("{} {}", option, example));
  return std::pair(value, text.substr(static_cast<size_t>(end - text.data())));
}

Result<double> parse_seconds(const std::string& option, const std::string& text,
                             const std::string& example) {
  const auto [value, name] = TW_TRY(parse_amount(option, text, example));
  const std::map<std::string, double> units = {
      {"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
  const auto unit = units.find(name);
  if (unit == units.end())
    return fail(ErrorKind::Usage, fmt::format("{} '{}' has the unit '{}'", option, text, name),
                "units are ms, s, m and h", fmt::format("{} {}", option, example));
  return value * unit->second;
}

Result<int64_t> parse_bytes(const std::string& option, const std::string& text) {
  const auto [value, name] = TW_TRY(parse_amount(option, text, "4G"));
  for (const auto& [unit, bytes] : {std::pair{"M", 1 << 20}, std::pair{"G", 1 << 30}})
    if (name == unit) return static_cast<int64_t>(value * bytes);
  return fail(ErrorKind::Usage, fmt::format("{} '{}' has the unit '{}'", option, text, name),
              "units are M and G", option + " 4G");
}

}  // namespace tilewright::driver
