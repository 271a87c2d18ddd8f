// Messages about names that are not there.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::runtime {

/// Invalid: there is no `what` called `wanted`; lists the names and suggests the nearest.
Error unknown_name(const std::string& what, const std::string& wanted,
                   const std::vector<std::string>& names);

}  // namespace tilewright::runtime
