// What writing and reading program dumps have in common. Internal.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "tilewright/accel/dpu/program.h"

namespace tilewright::dpu {

inline constexpr std::string_view kDumpFormat = "dpu-program-dump";
inline constexpr int kDumpVersion = 1;
/// The regions that a dump has; the others are not needed to run it.
inline constexpr std::array kDumpedRegs = {Reg::Input, Reg::Output, Reg::Swap, Reg::Params};

}  // namespace tilewright::dpu
