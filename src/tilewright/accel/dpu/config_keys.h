// The keys of a configuration, declared once: reading, writing, checking and dumps follow.
// Internal.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/accel/common/image.h"
#include "tilewright/accel/dpu/config.h"

namespace tilewright::dpu {

using Depths = std::array<int, kMemories>;
using IntOf = int& (*)(Config&);
using DoubleOf = double& (*)(Config&);
using BoolOf = bool& (*)(Config&);
using DepthsOf = Depths& (*)(Config&);

/// All keys but `kind` and `name`.
struct Key {
  std::string_view table;  ///< ``: at the top
  std::string_view name;
  std::variant<IntOf, DoubleOf, BoolOf, DepthsOf> value;
  double low = 0, high = 0;                          ///< of numbers
  std::string_view when_false = {}, when_true = {};  ///< words for them; else false and true
  std::string_view field = {};  ///< of instructions, that limits it with its width
  std::string path() const {
    return std::string(table) + (table.empty() ? "" : ".") + std::string(name);
  }
};
const std::vector<Key>& config_keys();

}  // namespace tilewright::dpu
