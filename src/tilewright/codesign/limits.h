// What a search makes small, and limits on it: `power = "2 W"`, `--limit latency=10ms`.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/result.h"

namespace tilewright::codesign {

enum class Objective { Latency, Power, PeakPower, Area, Energy, Edp };
std::string_view name(Objective objective);

/// The unit in which a value is kept; others become one of these.
enum class LimitUnit {
  Cycles,
  Seconds,
  Milliwatts,
  SquareMicrometres,
  Share,
  Joules,
  JouleSeconds
};
std::string_view name(LimitUnit unit);

/// At most `value`.
struct Limit {
  Objective objective = Objective::Power;
  double value = 0;
  LimitUnit unit = LimitUnit::Milliwatts;
  friend bool operator==(const Limit&, const Limit&) = default;
};

/// A positive number and a unit, with or without space: `2 W`, `500mW`, `2e9 cycles`, `40 %`.
/// errors: Usage, with the units that the objective has.
Result<Limit> parse_limit(const std::string& objective, const std::string& text);
/// A value that `objective` may be limited to: `2W`; empty if it cannot be limited.
std::string example_limit(const std::string& objective);
/// `2000 mW`: reads back.
std::string to_string(const Limit& limit);

}  // namespace tilewright::codesign
