#include "tilewright/codegen/gpu/calls.h"

#include <algorithm>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_fragments.h"

namespace tilewright::codegen {

bool stays_call(const Call& call) {
  if (lower::is_sync_call(call) || lower::find_lanes_form(*call.callee) != nullptr) return true;
  const hw::Intrinsic* in = hw::find_gpu_intrinsic(*call.callee);
  return in != nullptr && hw::is_of_thread(*in);
}

}  // namespace tilewright::codegen
