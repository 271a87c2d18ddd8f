// What generated kernels include: types, arithmetic, accesses to memory ports.
#pragma once

#include <string>

#include "tilewright/codegen/hls/hls.h"

namespace tilewright::codegen {

/// Text of tw_arithmetic.h.
std::string hls_arithmetic(HlsDialect dialect);

}  // namespace tilewright::codegen
