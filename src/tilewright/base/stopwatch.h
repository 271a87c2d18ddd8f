// Time that passes, by a clock that is never set back.
#pragma once

#include <chrono>
#include <cstdint>

namespace tilewright {

using SteadyClock = std::chrono::steady_clock;

/// units: ns since some moment in the past.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch())
      .count();
}

inline double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

}  // namespace tilewright
