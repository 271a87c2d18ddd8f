// How verbs of co-design find the mapping of a layer.
#pragma once

#include <string>

#include "tilewright/codesign/evaluation.h"
#include "tilewright/driver/command_line/options.h"
#include "tilewright/tune/spatial/methods.h"

namespace tilewright::driver {

/// --mapper, --mapper-trials, --choices; `search` must outlive the verb.
void add_mapping_options(Verb verb, tune::MappingSearch& search);
/// Whether it is the mapper, with every choice: what an evaluator does by itself.
bool is_plain(const tune::MappingSearch& search);
/// `hasco, 500 trials, seed 0, one choice`: what results depend on.
std::string describe(const tune::MappingSearch& search);
/// None for what is plain. errors: Usage, Unsupported (as tune::find_mapping).
Result<codesign::LayerMapper> layer_mapper(const tune::MappingSearch& search);

}  // namespace tilewright::driver
