// Memory for tensors at run time.
#pragma once

#include <memory>
#include <string>

#include "tilewright/base/file.h"

namespace tilewright::runtime {

/// Zero bytes, 64-byte aligned; huge pages are asked for from 4 MiB on. Freed with the last owner.
/// errors: Capacity, naming `purpose`.
Result<std::shared_ptr<void>> allocate(int64_t bytes, const std::string& purpose);

/// A file mapped read-only. errors: Io; Package for an empty file.
Result<MappedFile> map_package(const std::string& path);

}  // namespace tilewright::runtime
