// Which calls of instructions emission treats in ways of their own.
#pragma once

#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// Whether a call is written as one: instructions and barriers are, anything else is replaced by
/// its meaning.
bool stays_call(const Call& call);

}  // namespace tilewright::codegen
