// What a GPU kernel is given: its parameters in the text, and the names under which its body knows
// them.
//
//   CUDA:     (const f32* __restrict__ A, f32* __restrict__ B_given)
//             { f32* const B = (f32*)__builtin_assume_aligned(B_given, 16); ..
//   OpenCL C: (__global char* A_base, long A_offset, ..)
//             { __global const f32* restrict A = (__global const f32*)(A_base + A_offset); ..
#pragma once

#include <string>
#include <vector>

#include "tilewright/codegen/common/expr_writer.h"

namespace tilewright::codegen {

struct KernelHead {
  std::vector<std::string> parameters;
  std::vector<std::string> views;  ///< lines with which the body begins
};

/// Names of buffers and scalars come from `names`, types of scalars from `exprs`.
KernelHead kernel_head(const Func& func, bool opencl, CNames& names, CExprWriter& exprs);

}  // namespace tilewright::codegen
