// Mappings as people write them: the line that `to_string` makes, read back.
#pragma once

#include <string_view>

#include "tilewright/base/result.h"
#include "tilewright/rules/vta/mapping.h"

namespace tilewright::rules {

/// `n1 o4 h4 w56 c1 r3 s3, order h c, input@2 weights@2, tail 2 1, copies 2 2`, for `layer`; what
/// is left out is as usual: whole axes, tiles in the order of the axes, everything loaded inside of
/// all loops, no pieces, two copies. errors: Parse (not such a line; the place is a column),
/// Usage (a tile, an order or a place of a copy that the layer has not).
Result<VtaMapping> parse_vta_mapping(const VtaLayer& layer, std::string_view text);

/// Why a mapping cannot run: memory and what is in it, in KiB; empty: it fits.
std::vector<std::string> misfits(const VtaLayer& layer, const VtaMapping& mapping,
                                 const vta::Config& config);

}  // namespace tilewright::rules
