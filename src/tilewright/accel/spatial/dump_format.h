// What writing and reading program dumps have in common. Internal.
#pragma once

#include <string_view>

namespace tilewright::spatial {

inline constexpr std::string_view kDumpFormat = "spatial-program-dump";
inline constexpr int kDumpVersion = 1;

}  // namespace tilewright::spatial
