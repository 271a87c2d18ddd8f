// Copies into shared memory that threads start and wait for later.
#pragma once

#include <optional>

#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// Names of the intrinsics without effect that say when copies are to be done: `sync.commit` closes
/// the group of those a thread has started, `sync.wait(n)` waits for all its groups but the last n.
inline constexpr const char* kSyncCommit = "sync.commit";
inline constexpr const char* kSyncWait = "sync.wait";

/// Any intrinsic that orders threads or copies: those of above and `sync.block`.
bool is_sync_call(const Call& call);
bool is_commit(const Stmt& s);
/// The n of a `sync.wait(n)`.
std::optional<int64_t> waits_for(const Stmt& s);

/// Whether copies into the buffer may finish later: its allocation is marked `async`.
bool is_async(const Alloc& alloc);
/// Whether the device's copy engine makes them: the mark is `async=bulk`.
bool is_bulk(const Alloc& alloc);

/// Iterations of a pipelined loop whose copies are under way at a time; absent: not pipelined.
std::optional<int64_t> pipeline_depth(const For& loop);

}  // namespace tilewright::lower
