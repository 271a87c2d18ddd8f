#include "tilewright/lower/gpu_shared.h"

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"

namespace tilewright::lower {
namespace {

int64_t padding_of(const Alloc& alloc) {
  for (const Mark& mark : alloc.marks)
    if (const auto* count = std::get_if<int64_t>(&mark.value); count && mark.kind == MarkKind::Pad)
      return std::max<int64_t>(0, *count);
  return 0;
}

SharedBuffer size_of(const Alloc& alloc) {
  const std::vector<Expr>& shape = alloc.buffer.shape();
  SharedBuffer place{0, 1, 1};
  for (size_t axis = shape.size(); axis-- > 0;) {
    const int64_t extent = as_int(shape[axis]).value_or(0);
    place.elements *= axis + 1 == shape.size() ? (place.row = extent + padding_of(alloc)) : extent;
  }
  return place;
}

}  // namespace

SharedPlan plan_shared(const Stmt& kernel, int64_t arrivals) {
  SharedPlan plan;
  walk(kernel, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr || alloc->buffer.scope() != "shared") return;
    SharedBuffer place = size_of(*alloc);
    const int64_t align = is_bulk(*alloc) ? hw::kPanelAlign : kSharedAlign;
    place.offset = ceil_div(plan.bytes, align) * align;
    plan.bytes = place.offset + storage_bytes(alloc->buffer.dtype(), place.elements);
    plan.buffers.emplace(alloc->buffer, place);
  });
  plan.arrivals = ceil_div(plan.bytes, kArrivalBytes) * kArrivalBytes;
  if (arrivals > 0) plan.bytes = plan.arrivals + arrivals * kArrivalBytes;
  return plan;
}

std::vector<Expr> shared_strides(const Buffer& buffer, const SharedBuffer& place) {
  std::vector<Expr> strides(buffer.rank());
  int64_t step = 1;
  for (size_t axis = buffer.rank(); axis-- > 0;) {
    strides[axis] = int_imm(step);
    step *= axis + 1 == buffer.rank() ? place.row : as_int(buffer.shape()[axis]).value_or(0);
  }
  return strides;
}

}  // namespace tilewright::lower
