// What a design costs on a workload, layer by layer, for people to read.
#pragma once

#include <string>
#include <vector>

#include "tilewright/codesign/workload.h"
#include "tilewright/tune/spatial/methods.h"

namespace tilewright::driver {

struct EvalSettings {
  std::string design;      ///< a name or a file
  std::string technology;  ///< a name or a file; empty: `technology_of(design)`
  tune::MappingSearch mapping;
  std::vector<std::string> maps;  ///< mappings that are given, or files of them
  bool print_mappings = false;    ///< nothing but the mappings
};

/// In the folder of a design that a search found: the technology by which it was judged.
inline constexpr const char* kTechnologyFile = "technology.toml";
/// What a design is judged by where nobody says: that file beside it, else `asic45`.
std::string technology_of(const std::string& design);

/// Prints it. errors: of the files; Parse, Usage, Capacity (a mapping that is given, with its
/// place); Unsupported (no layer matches).
Result<int> run_eval(codesign::Workload workload, const EvalSettings& settings, bool as_json);

}  // namespace tilewright::driver
