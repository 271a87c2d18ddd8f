#include "tilewright/codegen/gpu/bulk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/lower/gpu_bulk.h"

namespace tilewright::codegen {
namespace {

constexpr size_t kFewestAxes = 2, kMostAxes = 5;

/// `tw_fetch3(to, map, c0, c1, c2, arrival, bytes)`
std::string fetch_function(size_t axes) {
  std::vector<std::string> parameters, places, operands;
  for (size_t axis = 0; axis < axes; ++axis) {
    parameters.push_back(fmt::format("i32 c{}", axis));
    places.push_back(fmt::format("%{}", axis + 3));
    operands.push_back(fmt::format("\"r\"(c{})", axis));
  }
  return fmt::format(
      R"c(TW_FN void tw_fetch{0}(void* to, const tw_map& map, {1}, u64* arrival, u32 bytes) {{
  const u32 counter = (u32)__cvta_generic_to_shared(arrival);
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(counter), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.tensor.{0}d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
               "[%1, {{{2}}}], [%2];" ::"r"((u32)__cvta_generic_to_shared(to)),
               "l"(&map), "r"(counter), {3}
               : "memory");
}}
)c",
      axes, fmt::join(parameters, ", "), fmt::join(places, ", "), fmt::join(operands, ", "));
}

}  // namespace

std::string cuda_bulk_helpers() {
  std::string text = R"c(struct __align__(64) tw_map {
  u64 words[16];
};
TW_FN bool tw_in_first_warp() {
  const u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  return __shfl_sync(~0u, thread / 32, 0) == 0;
}
TW_FN bool tw_elected() {
  u32 elected;
  asm volatile("{.reg .pred p; elect.sync _|p, -1; selp.b32 %0, 1, 0, p;}" : "=r"(elected));
  return elected != 0;
}
TW_FN void tw_begin_arrivals(u64* arrivals, i32 count) {
  for (i32 i = 0; i < count; ++i)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
                     (u32)__cvta_generic_to_shared(arrivals + i))
                 : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
TW_FN void tw_arrive(u64* arrival) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(
                   (u32)__cvta_generic_to_shared(arrival))
               : "memory");
}
TW_FN void tw_await(u64* arrival, u32 parity) {
  u32 done = 0;
  while (!done)
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"((u32)__cvta_generic_to_shared(arrival)), "r"(parity)
        : "memory");
}
)c";
  for (size_t axes = kFewestAxes; axes <= kMostAxes; ++axes) text += fetch_function(axes);
  return text;
}

std::vector<std::string> BulkText::parameters() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < use_.maps.size(); ++i)
    out.push_back(fmt::format("const __grid_constant__ tw_map tw_map_{}", i));
  return out;
}

void BulkText::begin(const std::string& memory, CText& out) const {
  if (memory.empty())
    out.line(fmt::format("__shared__ u64 tw_arrivals[{}];", use_.groups));
  else
    out.line(fmt::format("u64* const tw_arrivals = (u64*)({});", memory));
  // Groups begun and groups that have come, where the ring has them, and its turn.
  out.line("u32 tw_begun = 0, tw_come = 0, tw_begin_at = 0, tw_come_at = 0, tw_turn = 0;");
  out.line("const bool tw_first_warp = tw_in_first_warp();");
  out.line(fmt::format("if ({}) tw_begin_arrivals(tw_arrivals, {});", kOneThread, use_.groups));
  out.line("__syncthreads();");
}

void BulkText::commit(CText& out) const {
  out.line(fmt::format("if ({}) tw_arrive(tw_arrivals + tw_begin_at);", kOneThread));
  out.line(fmt::format("++tw_begun, tw_begin_at = tw_begin_at == {} ? 0 : tw_begin_at + 1;",
                       use_.groups - 1));
}

void BulkText::wait(int64_t groups, CText& out) const {
  out.open(fmt::format("for (; tw_come + {} < tw_begun; ++tw_come) {{", groups));
  out.line("tw_await(tw_arrivals + tw_come_at, tw_turn);");
  out.line(fmt::format("if (++tw_come_at == {}) tw_come_at = 0, tw_turn ^= 1;", use_.groups));
  out.close();
}

bool BulkText::fetch(const For& nest, CNames& names, CExprWriter& exprs, CText& out) const {
  const auto copy = lower::bulk_copy_of(nest, exprs.bounds);
  if (!copy) return false;
  const auto map = std::find(use_.maps.begin(), use_.maps.end(), copy->map);
  if (map == use_.maps.end()) return false;
  std::vector<Expr> roots = copy->at;
  roots.insert(roots.end(), copy->to_at.begin(), copy->to_at.end());
  exprs.begin(roots);
  out.open("{");
  std::vector<std::string> at;
  for (const Expr& place : copy->at) at.push_back("(i32)" + exprs.value(place, out));
  const std::string to = exprs.offset(copy->to, copy->to_at, out);
  out.line(fmt::format("tw_fetch{}({} + {}, tw_map_{}, {}, tw_arrivals + tw_begin_at, {});",
                       at.size(), names.of(copy->to), to, map - use_.maps.begin(),
                       fmt::join(at, ", "), copy->bytes));
  out.close();
  return true;
}

}  // namespace tilewright::codegen
