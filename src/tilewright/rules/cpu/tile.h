// The rule for reductions whose results run along vector lanes: a tile of them stays in registers.
#pragma once

#include <string>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/cpu/register_tile.h"

namespace tilewright::rules {

/// Schedules the reduction `name` with outer loops, reduction loops, then rows x columns x lanes in
/// registers; its initial values and its readers move into the tile. False, with some steps taken,
/// where it does not apply.
bool tile_reduction(Draft& draft, const std::string& name, const RegisterTile& tile,
                    const hw::CpuTarget& target, int threads);

/// The same inside loops that others have placed, on one thread, with the tile that the model ranks
/// first; its blocks are done then.
bool tile_by_model(Draft& draft, const std::string& name, const hw::CpuTarget& target,
                   TileRows rows = TileRows::Any);

}  // namespace tilewright::rules
