// Memory that the threads of a block share: where its buffers are.
#pragma once

#include <map>

#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// Offsets of shared buffers begin at multiples of this, in bytes.
inline constexpr int64_t kSharedAlign = 128;
/// What a kernel for CUDA may declare; what is beyond is asked for at launch.
inline constexpr int64_t kStaticSharedBytes = 48 << 10;

/// A buffer of scope `shared`: elements between the starts of rows (along the last axis) and
/// altogether, those that its mark `pad` leaves free included.
struct SharedBuffer {
  int64_t offset = 0, row = 0, elements = 0;
};
struct SharedPlan {
  std::map<Buffer, SharedBuffer> buffers;
  int64_t bytes = 0;
};

/// Places all shared buffers of a kernel. requires: constant shapes.
SharedPlan plan_shared(const Stmt& kernel);

/// Distances between elements along each axis of a shared buffer.
std::vector<Expr> shared_strides(const Buffer& buffer, const SharedBuffer& place);

}  // namespace tilewright::lower
