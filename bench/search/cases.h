// Kernels to search schedules for, by short names.
#pragma once

#include <string>
#include <vector>

#include "tilewright/tune/space.h"

namespace tilewright::bench {

struct CaseOptions {
  std::string workload;  ///< a workload file; needed for its cases alone
  int threads = 1;
};

/// `gemm:M,N,K`, `conv:C,K,SIZE,KERNEL,STRIDE` (channels in blocks of 16), `yolo:C6`, `resnet18:C7`
/// or the id of a case of the workload file.
///   errors: Usage (a name of no such form, or of a case without a file), Io, Parse, Invalid
///   (sizes).
Result<measure::Task> make_case(const std::string& name, const CaseOptions& options);

}  // namespace tilewright::bench
