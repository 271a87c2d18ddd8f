// Arithmetic with the meaning of docs/ir.md, as text that C, OpenCL C and CUDA C++ share.
#pragma once

namespace tilewright::codegen {

/// Functions `tw_add_i32`, `tw_f32_bf16` and so on, which the emitted text calls for what these
/// languages leave undefined or define otherwise. requires: before it stand the types f32 ... u64
/// and tw_bool, INT8_MIN and relatives, `tw_f16_f32`, `tw_f32_f16` and the macros TW_FN (how a
/// function begins), TW_POPCOUNT(u64), TW_CALL_f32(name), TW_PRODUCT_f32(a, b) (rounded) and,
/// unless TW_NO_F64 is defined, the same two for f64.
extern const char* const kArithmetic;

}  // namespace tilewright::codegen
