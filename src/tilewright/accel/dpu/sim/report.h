// What a launch did, by layers: busy cycles of each unit, and what bounds the layer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/device.h"

namespace tilewright::dpu {

/// One span of a stream. Layers may overlap.
struct LayerUse {
  std::string name;
  uint64_t begin = 0, end = 0;          ///< first instruction's begin, last one's done; cycles
  std::array<uint64_t, kUnits> busy{};  ///< by Unit; LOAD and SAVE with the port to themselves
  uint64_t macs = 0;                    ///< of one image
  /// The least time its instructions can take: the busiest of CONV, MISC and the DDR port, which
  /// LOAD and SAVE share.
  uint64_t bound() const;
  /// `conv`, `misc` or `ddr`.
  std::string bound_by() const;
};

/// requires: a report with times, of `run`.
std::vector<LayerUse> per_layer(const Config& config, const Run& run, const LaunchReport& report);
/// The same for all instructions together.
LayerUse whole(const Config& config, const Run& run, const LaunchReport& report);

}  // namespace tilewright::dpu
