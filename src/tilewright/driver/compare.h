// Comparing arrays the way `verify` reports it.
#pragma once

#include "tilewright/tune/compare.h"

namespace tilewright::driver {

using tune::compare;
using tune::Difference;
using tune::error_limit;

}  // namespace tilewright::driver
