// Which calls of instructions emission treats in ways of their own.
#pragma once

#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// A call of an instruction that runs on while threads go on.
bool is_product(const Stmt& s);
/// Such calls, and loops around them, alone.
bool is_products(const Stmt& s);

/// Whether a call is written as one: instructions and barriers are, anything else is replaced by
/// its meaning.
bool stays_call(const Call& call);

}  // namespace tilewright::codegen
