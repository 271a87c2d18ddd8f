// The C++ of designs of one structure: one kernel with a table for all of them, or a few.
//
//   conv 1: 64 to 64 channels, 56x56
//   conv 2: 128 to 128 channels, 28x28
//     =>  kernel conv(image, weights, .., table.0, table.1, ..), rows (64, 56, ..), (128, 28, ..)
#pragma once

#include <vector>

#include "tilewright/codegen/hls/hls.h"
#include "tilewright/compile/fpga/network.h"

namespace tilewright::compile {

struct CppKernel {
  Func func;  ///< its scalars are the columns of the table
  codegen::HlsKernel kernel;
};
/// How one design is run.
struct CppUse {
  size_t kernel = 0;
  std::vector<int64_t> row;  ///< of the table: the values of the kernel's scalars
};
struct CppKernels {
  std::vector<CppKernel> kernels;
  std::vector<CppUse> uses;  ///< of each design, in order
};

/// Kernels have names that no kernel of another structure of the network has. The first structure's
/// have that of the design's program. Designs share a kernel as long as its block RAMs fit the
/// device.
/// errors: Unsupported.
Result<CppKernels> cpp_kernels(const std::vector<const FpgaNetwork::Design*>& alike,
                               const hw::FpgaDevice& device,
                               codegen::HlsDialect dialect = codegen::HlsDialect::Vitis);

}  // namespace tilewright::compile
