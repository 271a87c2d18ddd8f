// How fast one core reads behind its caches, for the models that choose schedules.
#pragma once

namespace tilewright::tune {

/// units: bytes per vector multiply-add. source: specs/performance.md 0, rounded down.
inline constexpr double kBytesFromL2 = 32, kBytesFromL3 = 12, kBytesFromDram = 6;

}  // namespace tilewright::tune
