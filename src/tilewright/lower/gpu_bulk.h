// Copies into shared memory that the device's copy engine makes: whole tiles, started by one
// thread. They are loops and stores like any others, into a buffer marked `async=bulk`.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/arith/fetch.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// What a copy engine is told of a buffer before a kernel starts: how it lies in memory and which
/// tiles of it are copied. Axes are counted from the one whose elements lie side by side.
struct TensorMap {
  Buffer buffer;
  std::vector<int64_t> dims;     ///< elements along each axis; beyond them copies are zeros
  std::vector<int64_t> strides;  ///< bytes between elements of all axes but the first
  std::vector<int64_t> box;      ///< elements of a tile; along the first axis a row of a panel
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

/// One copy: the tile at `at` of the map's buffer, to where `to` has the element at `to_at`.
struct BulkCopy {
  TensorMap map;
  std::vector<Expr> at;  ///< by axis of the map; what is outside is zeros
  Buffer to;
  std::vector<Expr> to_at;
  int64_t bytes = 0;
};

/// The copy that a nest of two loops around one store makes, if a copy engine can make it: rows of
/// hw::kPanelBytes, one behind the other in shared memory, from a dense buffer whose rows begin on
/// multiples of 16 bytes. `bounds`: of what is around the nest.
std::optional<BulkCopy> bulk_copy_of(const For& nest, const arith::Bounds& bounds);

/// What a kernel needs for its bulk copies.
struct BulkUse {
  std::vector<TensorMap> maps;  ///< each once, in the order of their first use
  int64_t groups = 0;           ///< of copies under way at a time, the one being started included
};
/// errors: Unsupported (a buffer marked `async=bulk` is filled by anything but such copies in
/// pipelined loops, or read by anything but instructions that take panels).
Result<BulkUse> bulk_use(const Func& kernel);

}  // namespace tilewright::lower
