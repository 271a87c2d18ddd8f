// Constants of a graph: reading them, and copying their elements.
#pragma once

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// The constant that `value` is. A value that is none is a mistake of the caller: InternalError
/// with its name.
const Array& array_of(const Value& value);

/// Element `i` of `to` becomes element `k` of `from`, bit by bit. requires: equal dtypes (else
/// InternalError).
void copy_element(Array& to, int64_t i, const Array& from, int64_t k);

}  // namespace tilewright::graph
