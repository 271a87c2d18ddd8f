// A perfect nest as numbers: loop extents and the addresses its operands take.
#pragma once

#include <string>

#include "tilewright/base/result.h"
#include "tilewright/codegen/stream/concrete.h"

namespace tilewright::codegen::stream {

/// Loops (their order is free) and forms over them. The first `addresses` forms
/// are addresses, the others conditions (>= 0). Addresses are in scalars until
/// `take_lanes`, then in elements.
struct ConcreteNest {
  std::vector<int64_t> extents;
  std::vector<Form> forms;
  size_t addresses = 0;

  size_t size() const { return extents.size(); }
  int64_t iterations() const;
  /// Takes loop `i` out, at its iteration `at`.
  void fix(size_t i, int64_t at);
};

/// Drops loops of one iteration and makes loops that always advance together
/// one.
void merge_loops(ConcreteNest& nest);
/// Turns loops of negative steps round, where no address then steps backwards.
void point_forwards(ConcreteNest& nest);

/// Takes away the loops that run through the scalars of one element of `lanes`
/// scalars. All addresses must do so in the same order, aligned to elements.
/// errors: Unsupported, the reason.
Status take_lanes(ConcreteNest& nest, int64_t lanes);

/// True only if no two iterations have the same value of `forms[which]`.
bool injective(const ConcreteNest& nest, size_t which);
/// The nest with only the forms `which`.
ConcreteNest with_forms(const ConcreteNest& nest, const std::vector<size_t>& which);

}  // namespace tilewright::codegen::stream
