// What configurations and dumps of accelerators have in common as text.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tilewright::compile {

/// The lines of a configuration's TOML: what is at each key, `section.key` within a section.
std::map<std::string, std::string> toml_settings(const std::string& toml);

/// `KEY is A in the program, B in NAME` for each setting of `own` that differs in `other`.
std::vector<std::string> differing_settings(const std::map<std::string, std::string>& own,
                                            const std::map<std::string, std::string>& other,
                                            const std::string& name);

/// The key `format` of manifest.json in `folder`: whose dump it is. Empty if it cannot be read.
std::string dump_format(const std::string& folder);

}  // namespace tilewright::compile
