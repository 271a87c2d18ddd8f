// Memory for tensors at run time.
#pragma once

#include <memory>
#include <string>

#include "tilewright/base/result.h"

namespace tilewright::runtime {

/// Zero bytes, 64-byte aligned; huge pages are asked for from 4 MiB on. Freed with the last owner.
/// errors: Capacity, naming `purpose`.
Result<std::shared_ptr<void>> allocate(int64_t bytes, const std::string& purpose);

}  // namespace tilewright::runtime
