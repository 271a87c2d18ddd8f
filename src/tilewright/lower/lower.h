// Passes after scheduling, as a named pipeline: scheduled Func in, Func ready for code generation
// out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/ir/verify.h"

namespace tilewright::lower {

struct Pass {
  std::string name;
  std::string doc;  ///< one line
  Stage accepts, yields;
  std::function<Result<Func>(const Func&, const hw::CpuTarget&)> run;
};

/// Every pass, in no particular order; `default_pipeline` orders them.
const std::vector<Pass>& all_passes();
/// Comma-separated names.
std::string default_pipeline();

struct PipelineOptions {
  std::string passes = default_pipeline();
  bool verify_each = false;
  /// Called after each pass with its index, name, the program and whether it changed.
  std::function<void(int, const std::string&, const Func&, bool)> observer;
};

/// errors: Usage (unknown pass, with the list), or what a pass reports.
Result<Func> run_pipeline(const Func& func, const hw::CpuTarget& target,
                          const PipelineOptions& options = {});

}  // namespace tilewright::lower
