// Runs a dump and holds the results against those that the dump carries.
#pragma once

#include <optional>

#include "tilewright/accel/vta/device.h"

namespace tilewright::vta {

/// Bytes that are not as expected.
struct Mismatch {
  std::string where;   ///< name of the output, or of the one that has the byte, or the DRAM address
  size_t run = 0;      ///< after which the bytes were read
  uint64_t first = 0;  ///< the first one's place in `where`; units: bytes
  int actual = 0, expected = 0;      ///< its values as i8
  uint64_t count = 0, compared = 0;  ///< bytes that differ, and all
};

struct Replay {
  LaunchReport report;    ///< as of `execute`
  uint64_t compared = 0;  ///< bytes with an expected value; 0: the dump carries no results
  std::optional<Mismatch> mismatch;  ///< the first region that differs
};

/// errors: as `execute`.
Result<Replay> replay(Device& device, const Dump& dump, const LaunchOptions& options = {});

}  // namespace tilewright::vta
