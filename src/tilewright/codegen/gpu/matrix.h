// Instructions in the text of kernels: functions that all lanes of a warp call together, or each
// thread by itself.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tilewright/base/result.h"
#include "tilewright/codegen/common/expr_writer.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// The function kernels call: `tw_cuda_mma_bf16`. Its parameters are those of the meaning, in
/// order: pointers to a lane's registers, or to where the row begins that the lane hands over.
/// Those of a thread by itself are values, and it returns the result.
std::string matrix_function_name(const hw::Intrinsic& intrinsic);

/// What definitions of asynchronous instructions use, and kernels around them: `tw_show_cores`
/// before a barrier behind which they read shared memory, `tw_begin_products` before a run
/// of them, `tw_commit_products` behind it, `tw_wait_products(n)` where all runs but the last n
/// must be done. source: PTX ISA, 9.7.15 (wgmma).
std::string cuda_matrix_helpers();

/// Its definition in CUDA C++. requires: gpu_instruction(intrinsic).
std::string cuda_matrix_function(const hw::Intrinsic& intrinsic);

/// The definition of an instruction of a thread in OpenCL C. requires: is_of_thread(intrinsic), and
/// that it has a function there.
std::string opencl_thread_function(const hw::Intrinsic& intrinsic);

/// Functions by name, as kernels use them.
using MatrixFunctions = std::map<std::string, const hw::Intrinsic*>;
/// The definitions of `functions` for `target`; of those of warps `given` if that is not empty.
/// errors: Unsupported (an instruction that the target lacks).
Result<std::string> matrix_definitions(const MatrixFunctions& functions,
                                       const hw::GpuTarget& target, const std::string& given);

/// The call of that function, with the declarations it needs before it; `lane` is declared.
/// `strides`: of arrays of a lane those of its own elements, 0 along axes that tell threads apart.
/// `space`: the address space of a buffer, for pointers.
/// errors: Unsupported (registers that do not lie side by side, rows that do not begin on a
/// multiple of 16 bytes).
Result<std::string> matrix_call(const Call& call, const hw::Intrinsic& intrinsic, const Var& lane,
                                const CExprWriter::Strides& strides,
                                const std::function<std::string(const Buffer&)>& space,
                                CNames& names, CExprWriter& exprs, CText& out);

}  // namespace tilewright::codegen
