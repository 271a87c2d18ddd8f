// Targets as TOML files. Those in the folder hw of the repository, but for configurations of VTA,
// are part of the program; others are the user's: `--target FILE.toml`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/hw/targets.h"

namespace tilewright::hw {

/// A target of kind `cpu` or `gpu`. Keys are the members of CpuTarget, or of GpuTarget with the
/// table `rates`. What a file leaves out is as in the target that `base` names, else typical.
/// errors: Parse, with all problems and their lines.
Result<Target> parse_target(std::string_view text, const std::string& place);
/// errors: Io, and as parse_target.
Result<Target> load_target(const std::string& path);
/// A file that reads back as `target`, which is no accelerator: all but what is known of this
/// machine only, its fingerprint and measured rates.
std::string to_toml(const Target& target);

/// Those that are part of the program, in the order in which they are listed; valid by test.
const std::vector<CpuTarget>& file_cpus();
const std::vector<GpuTarget>& file_gpus();

}  // namespace tilewright::hw
