// The callee of Tensorize: reading it from text, and what it must be.
#pragma once

#include <memory>
#include <string>

#include "tilewright/arith/bounds.h"
#include "tilewright/schedule/match.h"

namespace tilewright::schedule {

/// What an intrinsic computes, loops of one iteration left out.
struct IntrinsicMeaning {
  Func func;                           ///< the one `nest` speaks of
  std::shared_ptr<const Func> callee;  ///< equal to `func`; the object calls share
  StoreNest nest;
  arith::Bounds bounds;
};

/// Serial or unrolled.
bool is_plain(const For& loop);
/// Removes loops of one iteration; the rest of the nest sees them as 0.
void drop_unit_loops(StoreNest& nest);

/// The function in `text`, to be called in `caller`: one nest of plain constant loops around one
/// store that sets or updates all of its result. errors: Parse, Invalid, NotApplicable with
/// requirement 3 of Tensorize.
Result<IntrinsicMeaning> read_intrinsic(const std::string& text, const Func& caller);

}  // namespace tilewright::schedule
