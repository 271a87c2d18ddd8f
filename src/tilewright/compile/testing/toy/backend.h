// The back-end of toy. docs/adding.md follows it step by step.
#pragma once

#include "tilewright/compile/backend.h"

namespace tilewright::toy {

const compile::Backend& toy_backend();

}  // namespace tilewright::toy
