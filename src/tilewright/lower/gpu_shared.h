// Memory that the threads of a block share: where its buffers are.
#pragma once

#include <map>
#include <optional>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// Offsets of shared buffers begin at multiples of this, in bytes; of those that a copy engine
/// fills, at multiples of hw::kPanelAlign.
inline constexpr int64_t kSharedAlign = 128;
/// Bytes of a barrier that counts what a copy engine has brought.
inline constexpr int64_t kArrivalBytes = 8;
/// What a kernel for CUDA may declare; what is beyond is asked for at launch.
inline constexpr int64_t kStaticSharedBytes = 48 << 10;

/// A buffer of scope `shared`: elements between the starts of rows (along the last axis) and
/// altogether, those that its mark `pad` leaves free and those behind the last row included.
struct SharedBuffer {
  int64_t offset = 0, row = 0, elements = 0;
};
struct SharedPlan {
  std::map<Buffer, SharedBuffer> buffers;
  int64_t arrivals = 0;  ///< offset of the barriers behind the buffers
  int64_t bytes = 0;
};

/// Places all shared buffers of a kernel, and behind them `arrivals` barriers. Where tiles reach
/// over the end of a result, threads would read behind the last row if they did not test every
/// element: buffers get room for that, up to twice their size, if all of them stay within `limit`
/// bytes. requires: constant shapes.
SharedPlan plan_shared(const Stmt& kernel, int64_t arrivals, int64_t limit);

/// How many elements of a shared buffer lie before the last that `load` may read, itself included,
/// if loops alone decide and no test does; absent if that is not known, or before the first.
std::optional<int64_t> shared_reach(const Load& load, const SharedBuffer& place,
                                    const arith::Bounds& loops);

/// Distances between elements along each axis of a shared buffer.
std::vector<Expr> shared_strides(const Buffer& buffer, const SharedBuffer& place);

}  // namespace tilewright::lower
