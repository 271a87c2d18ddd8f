// Attention over many keys on GPUs, some keys at a time.
#pragma once

#include "tilewright/hw/gpu_target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::rules {

/// Attention of which shared memory holds the scores of few queries only, with its keys in parts of
/// equal length: each has a greatest score and a sum of its own, and what the parts give is
/// rescaled and added up.
///   rewrite: m = max_j s[j]; y = sum_j exp(s[j] - m) v[j] / sum_j exp(s[j] - m)  =>
///            m[p], l[p], o[p] of each part; m = max_p m[p]; l = sum_p exp(m[p] - m) l[p];
///            y = sum_p exp(m[p] - m) / l * o[p]
///   keeps:   the value up to the order of sums; parts that a mask of -inf hides count for nothing
/// `func` itself where that does not apply, no length of a part divides the keys or no number of
/// rows that fits the queries, or math is exact.
/// source: Milakov and Gimelshein, arXiv 1805.02867; Dao et al., Flash-Decoding.
Func with_key_parts(const Func& func, const hw::GpuTarget& target);

}  // namespace tilewright::rules
