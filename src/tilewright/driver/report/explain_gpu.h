// Why a kernel for a GPU has the tile that it has.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tilewright/compile/compile.h"

namespace tilewright::driver {

/// What the model says of the tile of `kernel` and of the second best; absent where a record chose
/// the schedule, or no sum of products got a tile.
std::optional<nlohmann::ordered_json> gpu_choice_json(const compile::KernelReport& kernel,
                                                      const hw::GpuTarget& target);
/// The same as a table for people; empty if absent.
std::string gpu_choice_table(const compile::KernelReport& kernel, const hw::GpuTarget& target);

}  // namespace tilewright::driver
