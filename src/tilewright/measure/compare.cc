#include "tilewright/measure/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::measure {

double error_limit(DType dtype, MathMode math) {
  switch (dtype) {
    case DType::F32:
      return math == MathMode::Exact ? 1e-5 : 1e-4;
    case DType::F64:
      return 1e-12;
    case DType::F16:
      return 5e-3;
    case DType::BF16:
      return 2e-2;
    default:
      return 0;
  }
}

namespace {

/// Smaller results may be flushed to zero.
double smallest_normal(DType dtype) {
  if (dtype == DType::F32 || dtype == DType::BF16) return std::numeric_limits<float>::min();
  return dtype == DType::F64 ? std::numeric_limits<double>::min() : 0;
}

}  // namespace

Difference compare(const Array& actual, const Array& reference, MathMode math) {
  Difference difference;
  difference.limit = error_limit(reference.dtype(), math);
  if (actual.dtype() != reference.dtype() || actual.shape() != reference.shape()) {
    difference.problem =
        fmt::format("{} {} instead of {} {}", name(actual.dtype()), to_string(actual.shape()),
                    name(reference.dtype()), to_string(reference.shape()));
    return difference;
  }
  const double ignored = smallest_normal(reference.dtype());
  for (int64_t i = 0; i < actual.size(); ++i) {
    const double a = actual.get(i), r = reference.get(i);
    if (!std::isfinite(a) || !std::isfinite(r)) {
      const bool same = (std::isnan(a) && std::isnan(r)) || a == r;
      if (!same && difference.nonfinite++ == 0) difference.worst = i;
      continue;
    }
    if (std::abs(a - r) > std::max(difference.max_abs, ignored)) {
      difference.max_abs = std::abs(a - r);
      if (difference.nonfinite == 0) difference.worst = i;
    }
    difference.reference = std::max(difference.reference, std::abs(r));
  }
  difference.error =
      difference.reference > 0 ? difference.max_abs / difference.reference : difference.max_abs;
  return difference;
}

}  // namespace tilewright::measure
