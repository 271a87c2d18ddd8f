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

/// The reach of what threads read to compute their own elements, by buffer.
void add_reaches(const Stmt& s, const std::map<Buffer, SharedBuffer>& places,
                 const arith::Bounds& loops, std::map<Buffer, int64_t>& reaches) {
  if (const auto* loop = s.as<For>()) {
    arith::Bounds inside = loops;
    inside.bind(loop->var, loop->extent);
    return add_reaches(loop->body, places, inside, reaches);
  }
  const auto* store = s.as<Store>();
  if (store != nullptr && store->buffer.scope() == "local")
    walk(store->value, [&](const Expr& e) {
      const auto* load = e.as<Load>();
      const auto place = load ? places.find(load->buffer) : places.end();
      if (place == places.end()) return;
      const int64_t reach = shared_reach(*load, place->second, loops).value_or(0);
      reaches[load->buffer] = std::max(reaches[load->buffer], reach);
    });
  for (const Stmt& child : children(s)) add_reaches(child, places, loops, reaches);
}

SharedPlan planned(const Stmt& kernel, int64_t arrivals, const std::map<Buffer, int64_t>& reaches) {
  SharedPlan plan;
  walk(kernel, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr || alloc->buffer.scope() != "shared") return;
    SharedBuffer place = size_of(*alloc);
    const auto reach = reaches.find(alloc->buffer);
    if (reach != reaches.end() && reach->second <= 2 * place.elements)
      place.elements = std::max(place.elements, reach->second);
    const int64_t align = is_bulk(*alloc) ? hw::kPanelAlign : kSharedAlign;
    place.offset = ceil_div(plan.bytes, align) * align;
    plan.bytes = place.offset + storage_bytes(alloc->buffer.dtype(), place.elements);
    plan.buffers.emplace(alloc->buffer, place);
  });
  plan.arrivals = ceil_div(plan.bytes, kArrivalBytes) * kArrivalBytes;
  if (arrivals > 0) plan.bytes = plan.arrivals + arrivals * kArrivalBytes;
  return plan;
}

}  // namespace

SharedPlan plan_shared(const Stmt& kernel, int64_t arrivals, int64_t limit) {
  SharedPlan tight = planned(kernel, arrivals, {});
  std::map<Buffer, int64_t> reaches;
  add_reaches(kernel, tight.buffers, arith::Bounds(), reaches);
  SharedPlan roomy = planned(kernel, arrivals, reaches);
  return roomy.bytes <= limit ? roomy : tight;
}

std::optional<int64_t> shared_reach(const Load& load, const SharedBuffer& place,
                                    const arith::Bounds& loops) {
  int64_t reach = 1, step = 1;
  for (size_t axis = load.indices.size(); axis-- > 0;) {
    const auto range = arith::const_range(load.indices[axis], loops);
    if (!range || range->first < 0) return std::nullopt;
    reach += range->second * step;
    step *=
        axis + 1 == load.indices.size() ? place.row : as_int(load.buffer.shape()[axis]).value_or(0);
  }
  return reach;
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
