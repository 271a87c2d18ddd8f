// What configurations and dumps of accelerators have in common as text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::compile {

/// The lines of a configuration's TOML: what is at each key, `section.key` within a section.
std::map<std::string, std::string> toml_settings(const std::string& toml);

/// `KEY is A in the program, B in NAME` for each setting of `own` that differs in `other`.
std::vector<std::string> differing_settings(const std::map<std::string, std::string>& own,
                                            const std::map<std::string, std::string>& other,
                                            const std::string& name);

/// One JSON object of what `toml_settings` gave.
std::string settings_json(const std::map<std::string, std::string>& settings);

/// Whether a program made for the hardware `own` may run on the hardware called `name`, `other`,
/// both as TOML without what may differ. errors: Package, with each setting that differs and how to
/// compile for `target`; Usage, unless `same_clock`: a program keeps its clock and timing.
Status check_same_hardware(const std::string& program, const std::string& target,
                           const std::string& name, const std::string& own,
                           const std::string& other, bool same_clock);

/// The key `format` of manifest.json in `folder`: whose dump it is. Empty if it cannot be read.
std::string dump_format(const std::string& folder);

}  // namespace tilewright::compile
