// Verilog under Verilator, as a shared object.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright::accel {

struct Model {
  std::string top;      ///< name of the module
  std::string verilog;  ///< all modules
  std::string harness;  ///< C++ around the verilated class `V<top>`, behind a C interface
  /// Few cycles will be run: it is compiled in less time, for slower runs.
  bool short_run = false;
};

/// Path of the shared object: from the cache folder ($TILEWRIGHT_CACHE_DIR or
/// $XDG_CACHE_HOME/tilewright), or verilated and compiled now. errors: Tool, Io.
Result<std::string> compiled(const Model& model);

}  // namespace tilewright::accel
