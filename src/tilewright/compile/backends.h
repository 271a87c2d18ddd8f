// The table of back-ends.
#pragma once

#include <string>
#include <vector>

#include "tilewright/compile/backend.h"

namespace tilewright::compile {

/// All back-ends of this build, and those that were added.
const std::vector<const Backend*>& backends();
/// Adds a back-end of one's own (tests do); it must live as long as the process. Not for several
/// threads: before anything is compiled. requires: a new name.
void add_backend(const Backend& backend);
/// That of `target`.
const Backend& backend_of(const hw::Target& target);
/// The one called `name`; null if there is none.
const Backend* find_backend(std::string_view name);

/// Every name that --target takes.
std::vector<std::string> target_names();
/// errors: Device (an unknown name: all names, and the nearest), Usage and those of the hardware.
Result<hw::Target> find_target(const std::string& name, const TargetOptions& options = {});

}  // namespace tilewright::compile
