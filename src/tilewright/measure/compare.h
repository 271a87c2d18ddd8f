// How far apart two results may be, and are.
#pragma once

#include <string>

#include "tilewright/base/array.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::measure {

/// How far `actual` is from `reference`.
struct Difference {
  double max_abs = 0;     ///< largest absolute difference; 0 if below the smallest normal number
  double reference = 0;   ///< largest absolute reference value
  double error = 0;       ///< max_abs / reference (max_abs itself if the reference is all zero)
  double limit = 0;       ///< error allowed for the dtype
  int64_t nonfinite = 0;  ///< elements finite on one side only, or different infinities or NaN
  int64_t worst = -1;     ///< flat position of the largest difference, or of the first nonfinite
  std::string problem;    ///< shapes or dtypes that differ; empty otherwise
  bool ok() const { return problem.empty() && nonfinite == 0 && error <= limit; }
};

/// The error allowed: f32 1e-4 (1e-5 exact), f16 5e-3, bf16 2e-2, f64 1e-12, integers and bool 0.
double error_limit(DType dtype, MathMode math);

Difference compare(const Array& actual, const Array& reference, MathMode math);

}  // namespace tilewright::measure
