#include "tilewright/codegen/gpu/kernel_facts.h"

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_fragments.h"

namespace tilewright::codegen {

bool is_thread_loop(const Stmt& s) {
  const auto* loop = s.as<For>();
  return loop != nullptr && lower::is_thread_loop(*loop);
}

bool is_block_loop(const Stmt& s) {
  const auto* loop = s.as<For>();
  return loop != nullptr && lower::is_block_loop(*loop);
}

bool is_shared_out(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    const auto* call = x.as<Call>();
    found |= is_thread_loop(x) || (call && lower::is_sync_call(*call)) || lower::is_warp_call(x);
  });
  return found;
}

bool has_sync(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) { found |= lower::is_sync(x); });
  return found;
}

bool uses_type(const Func& func, DType dtype) {
  bool found = false;
  for (const Param& p : func.params) found |= p.buffer.dtype() == dtype;
  walk(
      func.body,
      [&](const Stmt& s) {
        if (const auto* alloc = s.as<Alloc>()) found |= alloc->buffer.dtype() == dtype;
      },
      [&](const Expr& e) { found |= e.dtype() == dtype; });
  return found;
}

bool stores_only(const Stmt& s, const std::set<Buffer>& buffers) {
  bool any = false, other = false;
  walk(s, [&](const Stmt& x) {
    if (const auto* store = x.as<Store>()) (buffers.contains(store->buffer) ? any : other) = true;
    other |= x.as<Call>() != nullptr;
  });
  return any && !other;
}

bool fills_only(const Stmt& s, const std::set<Buffer>& buffers) {
  bool several = false;
  walk(s, [&](const Stmt& x) { several |= x.as<Seq>() != nullptr; });
  return !several && stores_only(s, buffers);
}

int64_t own_elements(const Buffer& buffer, const Stmt& body) {
  int64_t count = 1;
  for (size_t axis = lower::thread_axes(buffer, body); axis < buffer.rank(); ++axis)
    count *= as_int(buffer.shape()[axis]).value_or(1);
  return count;
}

int64_t blocks_at_once(const Stmt& body, int64_t threads, const hw::GpuTarget& target) {
  constexpr int64_t kFew = 48, kMany = 64, kRegisters = 128;
  int64_t words = 0;
  bool shares = false;
  walk(body, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr) return;
    const Buffer& b = alloc->buffer;
    shares |= b.scope() == "shared";
    if (b.scope() == "local" || b.scope() == "warp")
      words += own_elements(b, body) * std::max(bit_width(b.dtype()), 32) / 32;
  });
  if (!shares || words < kFew || words > kMany) return 1;
  return std::max<int64_t>(1, target.unit_registers / (kRegisters * threads));
}

}  // namespace tilewright::codegen
