// Memory of a warp (scope `warp`) is registers of its lanes: matrix instructions say which lane
// holds what. The pass `fragments` (lower/passes.h) gives buffers that layout.
#pragma once

#include <memory>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// What `intrinsic` computes on operands as lanes hold them, named `<name>.lanes`: `c: f32[16,8]`
/// => `c: f32[32,4]`. requires: gpu_instruction(intrinsic).
std::shared_ptr<const Func> lanes_form(const hw::Intrinsic& intrinsic);

/// The intrinsic whose lanes_form `callee` is; null if there is none.
const hw::Intrinsic* find_lanes_form(const Func& callee);
/// A call of such a function: lanes of a warp do it together.
bool is_warp_call(const Stmt& s);
/// A call of an instruction that a thread does by itself.
bool is_thread_call(const Stmt& s);

}  // namespace tilewright::lower
