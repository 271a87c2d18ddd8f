// The table of back-ends.
#pragma once

#include <string>
#include <vector>

#include "tilewright/compile/backend.h"

namespace tilewright::compile {

/// All back-ends of this build.
const std::vector<const Backend*>& backends();
/// That of `target`.
const Backend& backend_of(const hw::Target& target);
/// The one called `name`; null if there is none.
const Backend* find_backend(std::string_view name);

/// Every name that --target takes.
std::vector<std::string> target_names();
/// errors: Device (an unknown name: all names, and the nearest), Usage and those of the hardware.
Result<hw::Target> find_target(const std::string& name, const TargetOptions& options = {});

}  // namespace tilewright::compile
