// The rule for reductions with no axis of the result along lanes: sums and maxima of rows.
#pragma once

#include <string>

#include "tilewright/tune/draft.h"

namespace tilewright::tune {

/// One result of `name` at a time, with its initial value and its readers beside it. False, with
/// some steps taken, where it does not apply.
bool reduce_rows(Draft& draft, const std::string& name);

}  // namespace tilewright::tune
