// Strided copies: the loop nests that a DMA engine, a TMA descriptor, a burst or memcpy can do.
// This is for loops whose outer variables have no values yet: sizes, pads and strides are
// expressions of them. codegen/stream/transfer.h does the same for nests of numbers, whose outer
// loops have run.
#pragma once

#include "tilewright/arith/bounds.h"

namespace tilewright::arith {

/// One dimension of a copy. Of its `size` elements the first `pad_before` and the last `pad_after`
/// take the fill value, those between come from the source. All three are >= 0 where the nest runs,
/// and pad_before + pad_after <= size: pads of a tile are clamped to the tile.
struct CopyAxis {
  Expr size;                          ///< elements written, pads included
  Expr pad_before, pad_after;         ///< elements
  Expr source_stride, target_stride;  ///< elements from one step to the next
};

/// target[target_base + sum i_k * target_stride_k] = source[source_base + sum i_k *
/// source_stride_k] for all i_k in [0, size_k), or `fill` where some i_k lies in a pad of its axis.
struct StridedCopy {
  Buffer target, source;
  /// Flat offsets of element (0, 0, ...), in elements; inside a pad the source's may lie outside.
  Expr target_base, source_base;
  std::vector<CopyAxis> axes;  ///< outermost loop first
  Expr fill;                   ///< an immediate; absent if nothing is padded
};

/// Strides in elements of buffers that are not dense row-major.
using StrideMap = std::map<Buffer, std::vector<Expr>>;

/// Recognises loops around one block that stores `source[..]`, or `select(inside, source[..],
/// fill)`, where all indices are sums of loop variables and `inside` and the guard bound single
/// loops. The result mentions only variables of outside. Loops that split one index are one axis
/// again. errors: NotApplicable, with what is in the way.
Result<StridedCopy> strided_copy(const Stmt& nest, const Bounds& bounds,
                                 const StrideMap& strides = {});

/// The same copy with neighbouring axes made one where both sides allow it and no pad is between:
/// rows that touch become one run.
StridedCopy coalesce(const StridedCopy& copy, const Bounds& bounds);

}  // namespace tilewright::arith
