#include "tilewright/codegen/gpu/calls.h"

#include <algorithm>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_fragments.h"

namespace tilewright::codegen {

bool is_product(const Stmt& s) {
  const auto* call = s.as<Call>();
  const hw::Intrinsic* in = call ? lower::find_lanes_form(*call->callee) : nullptr;
  return in != nullptr && hw::gpu_instruction(*in)->asynchronous();
}

bool is_products(const Stmt& s) {
  if (is_product(s)) return true;
  if (!s.as<For>() && !s.as<Seq>()) return false;
  const std::vector<Stmt> parts = children(s);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), is_products);
}

bool stays_call(const Call& call) {
  if (lower::is_sync_call(call) || lower::find_lanes_form(*call.callee) != nullptr) return true;
  const hw::Intrinsic* in = hw::find_gpu_intrinsic(*call.callee);
  return in != nullptr && hw::is_of_thread(*in);
}

}  // namespace tilewright::codegen
