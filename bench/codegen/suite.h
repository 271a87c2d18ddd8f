// Suites of a workload file, compiled as networks are, against the FMA peak of the moment.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright::bench {

struct SuiteOptions {
  std::string workload;         ///< the file
  std::string suites;           ///< comma-separated
  std::string id;               ///< only the cases whose id holds this text
  std::string math = "direct";  ///< fast allows Winograd, exact neither that nor fused adds
  int threads = 1;
  double seconds = 0.15;  ///< measuring per case
  bool dump = false;      ///< print the scheduled kernels instead
};

/// Prints one line per case and the geometric mean and worst of each suite. The time of a case is
/// that of its own kernel; copies between layouts around it stand beside.
Status run_suites(const SuiteOptions& options);

}  // namespace tilewright::bench
