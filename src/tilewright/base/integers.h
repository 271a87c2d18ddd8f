// Integer arithmetic that every layer needs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilewright {

/// a / b rounded up. requires: a >= 0, b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// 1 for no values.
inline int64_t product(const std::vector<int64_t>& values) {
  int64_t result = 1;
  for (const int64_t v : values) result *= v;
  return result;
}

/// All divisors, in order. requires: n > 0.
inline std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d * d != n) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

/// Whether every one of `values` is `wanted`; true of none.
inline bool all_are(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [=](int64_t v) { return v == wanted; });
}

}  // namespace tilewright
