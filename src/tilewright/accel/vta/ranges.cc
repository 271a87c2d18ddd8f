#include "tilewright/accel/vta/ranges.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::vta {
namespace {

Status check_operand(const Config& config, std::string_view operand, Mem mem, uint64_t most) {
  if (most < static_cast<uint64_t>(config.depth(mem))) return {};
  return fail(ErrorKind::Capacity, fmt::format("the {} index leaves memory {}", operand, name(mem)),
              fmt::format("largest index {}, the memory has {} elements", most, config.depth(mem)));
}

uint64_t reach(const Loops& loops, uint64_t outer, uint64_t inner) {
  const uint64_t o = loops.outer > 0 ? loops.outer - 1 : 0;
  const uint64_t i = loops.inner > 0 ? loops.inner - 1 : 0;
  return o * outer + i * inner;
}

}  // namespace

Status check_transfer(const Config& config, const Transfer& transfer) {
  const std::string_view verb = transfer.store ? "store" : "load";
  if (transfer.store != (transfer.mem == Mem::Out))
    return fail(ErrorKind::Invalid, fmt::format("memory {} has no {}", name(transfer.mem), verb),
                "stores read out; uop, wgt, inp, acc and acc8 are loaded");
  const bool padded = (transfer.y_pad_top | transfer.y_pad_bottom | transfer.x_pad_left |
                       transfer.x_pad_right) != 0;
  if (transfer.store && padded)
    return fail(ErrorKind::Invalid, "a store has padding", "only loads fill with zeros");
  const uint64_t width = uint64_t{transfer.x_pad_left} + transfer.x_size + transfer.x_pad_right;
  const uint64_t rows = uint64_t{transfer.y_pad_top} + transfer.y_size + transfer.y_pad_bottom;
  const auto depth = static_cast<uint64_t>(config.depth(transfer.mem));
  // Both factors are bounded first: their product cannot overflow then.
  if (width > depth || rows > depth || transfer.sram + width * rows > depth)
    return fail(ErrorKind::Capacity, fmt::format("a {} leaves memory {}", verb, name(transfer.mem)),
                fmt::format("{} rows of {} elements from element {} on, the memory has {}", rows,
                            width, transfer.sram, depth));
  return {};
}

Status check_dram(const Config& config, const Transfer& transfer, uint64_t begin, uint64_t end) {
  if (transfer.y_size == 0) return {};
  const auto bytes = static_cast<uint64_t>(config.element_bytes(transfer.mem));
  const uint64_t first = transfer.dram * bytes;
  const uint64_t elements = uint64_t{transfer.y_size - 1} * transfer.x_stride + transfer.x_size;
  const uint64_t last = first + elements * bytes;
  if (first >= begin && last <= end) return {};
  return fail(
      ErrorKind::Invalid,
      fmt::format("a {} of {} leaves the allocated memory", transfer.store ? "store" : "load",
                  name(transfer.mem)),
      fmt::format("bytes [{:#x}, {:#x}), allocated is [{:#x}, {:#x})", first, last, begin, end));
}

Status check_indices(const Config& config, std::span<const Uop> uops, const Loops& loops,
                     bool gemm) {
  Uop most;
  for (const Uop& uop : uops) {
    most.dst = std::max(most.dst, uop.dst);
    most.src = std::max(most.src, uop.src);
    most.wgt = std::max(most.wgt, uop.wgt);
  }
  TW_TRY_STATUS(check_operand(config, "destination", Mem::Acc,
                              most.dst + reach(loops, loops.dst_outer, loops.dst_inner)));
  TW_TRY_STATUS(check_operand(config, "source", gemm ? Mem::Inp : Mem::Acc,
                              most.src + reach(loops, loops.src_outer, loops.src_inner)));
  if (!gemm) return {};
  return check_operand(config, "weight", Mem::Wgt,
                       most.wgt + reach(loops, loops.wgt_outer, loops.wgt_inner));
}

}  // namespace tilewright::vta
