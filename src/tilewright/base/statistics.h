// Statistics of readings.
#pragma once

#include <algorithm>
#include <vector>

namespace tilewright {

/// The middle value, or the mean of the two in the middle; 0 for no values.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// The value below which `share` of the values lie; 0 for no values.
template <class T>
double quantile(std::vector<T> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return static_cast<double>(
      values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)]);
}

/// Width of the middle half; 0 for no values.
inline double middle_half(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return values[n - 1 - n / 4] - values[n / 4];
}

}  // namespace tilewright
