// Hardware of any kind as Verilog.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/codesign/hardware.h"

namespace tilewright::driver {

/// What the generators make of one piece of hardware.
struct GeneratedRtl {
  std::string label, top, verilog, toml;
  std::vector<std::pair<std::string, std::string>> benches;  ///< name, text for Icarus
};

/// errors: what the hardware's own checks say; Unsupported (the generator cannot build it).
Result<GeneratedRtl> generated_rtl(const codesign::Hardware& hardware);
/// TOP.v, TOP.toml and the benches in `folder`, which is made. errors: Io.
Status write_rtl(const GeneratedRtl& made, const std::string& folder);

}  // namespace tilewright::driver
