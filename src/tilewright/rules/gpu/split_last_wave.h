// Products whose tiles would leave much of the last wave of blocks idle, as two products.
#pragma once

#include "tilewright/hw/gpu_target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::rules {

/// A product on matrix instructions, with what is computed from it row by row, as two: rows that
/// fill whole waves, and the rest, a product of its own with its own tiles and parts of the terms.
/// These are the two ranges of tiles of stream-K (waves of whole tiles, and one wave that divides
/// the terms), but one after the other, and parts are equal. Sums of parts are added up in order.
///   rewrite: for m in M { C[m] = sum_k A[m, k] B[k]  Y[m] = f(C[m]) }  =>
///            for m in R { C@0[m] = sum_k A[m, k] B[k]  Y[m] = f(C@0[m]) }
///            for m in M - R { C@1[m] = sum_k A[m + R, k] B[k]  Y[m + R] = f(C@1[m]) }
///   keeps:   the value up to the order of sums
/// `func` itself where rows_of_whole_waves (gpu_mma.h) gives none, factors are not parameters used
/// as they are, what follows mixes rows, or math is exact.
/// source: Osama et al., "Stream-K", PPoPP 2023, arXiv 2301.03598, section 5.2 (hybrids).
Func with_row_parts(const Func& func, const hw::GpuTarget& target);
/// The same with `first` rows in the first part; `func` itself where there are not more.
Func in_row_parts(const Func& func, const hw::GpuTarget& target, int64_t first);

}  // namespace tilewright::rules
