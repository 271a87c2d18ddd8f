// What emission asks of a kernel before it writes it.
#pragma once

#include <set>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

bool is_thread_loop(const Stmt& s);
bool is_block_loop(const Stmt& s);
/// Whether threads part ways, meet or do something together somewhere inside `s`.
bool is_shared_out(const Stmt& s);
/// Whether there is a barrier in `s`.
bool has_sync(const Stmt& s);
/// Whether a parameter, an allocation or a value is of the type.
bool uses_type(const Func& func, DType dtype);

/// Whether `s` stores, into `buffers` alone, and does nothing else.
bool stores_only(const Stmt& s, const std::set<Buffer>& buffers);
/// The same of one nest.
bool fills_only(const Stmt& s, const std::set<Buffer>& buffers);

/// Elements of a thread's own array: without the axes that tell threads apart.
int64_t own_elements(const Buffer& buffer, const Stmt& body);

/// Blocks that a unit is to hold at a time. One whose threads keep many results in registers gets
/// company where its threads can do with what is left to them: it computes while others wait.
int64_t blocks_at_once(const Stmt& body, int64_t threads, const hw::GpuTarget& target);

}  // namespace tilewright::codegen
