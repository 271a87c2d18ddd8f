// Copies in DRAM: in by the load module, through the accumulator by a product with one, and out.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codegen/vta/emitter.h"
#include "tilewright/codegen/vta/vta.h"

namespace tilewright::codegen {
namespace {

using vta::Mem;

/// The weight that keeps values as they are, in the last place of the weight memory.
Result<uint32_t> load_one(vta::Builder& builder) {
  const vta::Config& config = builder.config();
  const auto bytes = static_cast<uint64_t>(config.element_bytes(Mem::Wgt));
  const std::string one = vta_code::diagonal_element(config, 1);
  const uint64_t address = TW_TRY(builder.allocate("copy.one", bytes, bytes));
  builder.write(address, one);
  vta::Transfer load;
  load.mem = Mem::Wgt;
  load.sram = static_cast<uint32_t>(config.depth(Mem::Wgt) - 1);
  load.dram = static_cast<uint32_t>(address / bytes);
  load.y_size = load.x_size = load.x_stride = 1;
  TW_TRY_STATUS(builder.transfer(load));
  return load.sram;
}

}  // namespace

Status emit_vta_copy(uint64_t from, uint64_t to, uint64_t bytes, vta::Builder& builder) {
  const vta::Config& config = builder.config();
  const auto size = static_cast<uint64_t>(config.element_bytes(Mem::Out));
  if (config.element_bytes(Mem::Inp) != config.element_bytes(Mem::Out) ||
      config.block_in() != config.block_out() || bytes % size != 0)
    return fail(ErrorKind::Unsupported, fmt::format("a copy of {} bytes", bytes),
                fmt::format("elements have {} bytes on the way in and {} on the way out",
                            config.element_bytes(Mem::Inp), size));
  const uint32_t one = TW_TRY(load_one(builder));
  // Halves of the memories take turns, so that loading, adding and storing overlap.
  const uint64_t chunk = static_cast<uint64_t>(
      std::min({config.depth(Mem::Inp) / 2, config.depth(Mem::Acc) / 2, int64_t{8192}}));
  const uint64_t count = bytes / size;
  for (uint64_t done = 0, turn = 0; done < count; done += chunk, ++turn) {
    const auto n = static_cast<uint32_t>(std::min(chunk, count - done));
    vta::Transfer move;
    move.mem = Mem::Inp;
    move.sram = static_cast<uint32_t>(turn % 2 * chunk);
    move.dram = static_cast<uint32_t>(from / size + done);
    move.y_size = 1;
    move.x_size = move.x_stride = n;
    TW_TRY_STATUS(builder.transfer(move));
    vta::Loops loops;
    loops.inner = n;
    loops.dst_inner = 1;
    TW_TRY_STATUS(builder.gemm({{move.sram, 0, 0}}, loops, true));
    loops.src_inner = 1;
    TW_TRY_STATUS(builder.gemm({{move.sram, move.sram, one}}, loops, false));
    move.store = true;
    move.mem = Mem::Out;
    move.dram = static_cast<uint32_t>(to / size + done);
    TW_TRY_STATUS(builder.transfer(move));
  }
  return {};
}

}  // namespace tilewright::codegen
