// Vector loops that copy: several elements in one access.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// A store of an element of another buffer, or of zero where `condition` does not hold (absent: it
/// always does).
struct Copy {
  Load from;
  Expr condition;
};
std::optional<Copy> copy_of(const Store& store);

/// How many elements an access of at most `most_bytes` moves if the body of `loop` copies one
/// element per iteration (copy_of): those of consecutive iterations lie side by side in both
/// buffers, every first one of so many on a multiple of their size, and one condition holds for all
/// of them or for none. 1 where that cannot be shown.
/// `bounds`: with the loop's variable. requires: buffers begin on a multiple of 16 bytes.
int64_t copy_lanes(const For& loop, const std::map<Buffer, std::vector<Expr>>& strides,
                   const arith::Bounds& bounds, int64_t most_bytes);

}  // namespace tilewright::codegen
