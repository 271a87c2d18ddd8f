// Memory of a warp (scope `warp`) is registers of its lanes: matrix instructions say which lane
// holds what.
#pragma once

#include <memory>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// Gives buffers of scope `warp` the layout of the instructions that use them: an axis of lanes in
/// front, axes of tiles in place of those of elements, an axis of registers behind. With a layout
/// of 16 x 8 tiles: `C: f32[64,32]`, `C[i, j]` => `C: f32[32, 4, 4, 4]`,
/// `C[lane(i % 16, j % 8), i/16, j/8, register(i % 16, j % 8)]`. Calls become calls of
/// `lanes_form`. errors: Unsupported (no instruction uses a buffer, or two in different ways; an
/// operand is in the wrong memory or does not begin on a tile).
Result<Func> fragments(const Func& func);

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
