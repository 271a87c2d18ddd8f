// Products of groups of warps that run while threads go on (wgmma), and waiting for them.
#pragma once

#include <optional>

#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// The intrinsic without effect that waits for products: `sync.products(n)` for all runs of them
/// that a thread has started but the last n.
inline constexpr const char* kSyncProducts = "sync.products";
/// The n of a `sync.products(n)`.
std::optional<int64_t> waits_for_products(const Stmt& s);

/// A call of an instruction that runs on while threads go on.
bool is_product(const Stmt& s);
/// A run of products: such calls, and loops around them, alone.
bool is_products(const Stmt& s);

}  // namespace tilewright::lower
