// Vector addition on VTA: load two vectors into the accumulators, add, clip, store.
// The Builder orders the modules: it finds out from the addresses which instruction has to wait for
// which. Runs on the functional and on the cycle simulator and compares with plain C++.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/vta/builder.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/tsim.h"

namespace vta = tilewright::vta;
using tilewright::Result;

constexpr uint32_t kElements = 64;  // of 16 lanes each

std::string bytes_of(const std::vector<int32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t)};
}

// A LOAD or STORE of one row. DRAM addresses of instructions count elements of the memory.
vta::Transfer row(const vta::Config& config, vta::Mem mem, uint32_t sram, uint64_t address) {
  vta::Transfer transfer;
  transfer.store = mem == vta::Mem::Out;
  transfer.mem = mem;
  transfer.sram = sram;
  transfer.dram = static_cast<uint32_t>(address / static_cast<uint64_t>(config.element_bytes(mem)));
  transfer.y_size = 1;
  transfer.x_size = transfer.x_stride = kElements;
  return transfer;
}

Result<vta::Program> build(const vta::Config& config, const std::vector<int32_t>& a,
                           const std::vector<int32_t>& b) {
  vta::Builder builder(config);
  const uint64_t a_at = TW_TRY(builder.allocate("a", a.size() * sizeof(int32_t)));
  const uint64_t b_at = TW_TRY(builder.allocate("b", b.size() * sizeof(int32_t)));
  const uint64_t c_at = TW_TRY(builder.allocate("c", a.size()));
  builder.write(a_at, bytes_of(a));
  builder.write(b_at, bytes_of(b));
  builder.add_output({"c", c_at, a.size()});

  // a in accumulators 0 to 63, b behind it.
  TW_TRY_STATUS(builder.transfer(row(config, vta::Mem::Acc, 0, a_at)));
  TW_TRY_STATUS(builder.transfer(row(config, vta::Mem::Acc, kElements, b_at)));
  // One micro-op, repeated by a hardware loop that moves both indices on by one.
  vta::Loops loops;
  loops.inner = kElements;
  loops.dst_inner = loops.src_inner = 1;
  TW_TRY_STATUS(builder.alu(vta::AluOp::Add, {{0, kElements, 0}}, loops, std::nullopt));
  // Stores keep the low byte of an accumulator: clip first. With an immediate, src is dst.
  TW_TRY_STATUS(builder.alu(vta::AluOp::Min, {{0, 0, 0}}, loops, int16_t{127}));
  TW_TRY_STATUS(builder.alu(vta::AluOp::Max, {{0, 0, 0}}, loops, int16_t{-128}));
  TW_TRY_STATUS(builder.transfer(row(config, vta::Mem::Out, 0, c_at)));
  return builder.finish();
}

tilewright::Status run() {
  const vta::Config config;
  std::vector<int32_t> a, b;
  std::string want;
  for (uint32_t i = 0; i < kElements * 16; ++i) {
    a.push_back(static_cast<int32_t>(i % 201) - 100);
    b.push_back(static_cast<int32_t>(i * 7 % 101) - 50);
    want.push_back(static_cast<char>(std::clamp(a[i] + b[i], -128, 127)));
  }
  const vta::Program program = TW_TRY(build(config, a, b));
  for (const vta::Insn& insn : program.runs[0].insns)
    fmt::print("{}\n", vta::disassemble(config, insn));

  std::vector<std::unique_ptr<vta::Device>> devices;
  devices.push_back(vta::make_fsim(config, program.end()));
  devices.push_back(vta::make_tsim(config, program.end()));
  for (const auto& device : devices) {
    const vta::LaunchReport report = TW_TRY(vta::execute(*device, program));
    std::string got(want.size(), '\0');
    TW_TRY_STATUS(device->read(program.outputs[0].address, got.data(), got.size()));
    // The functional simulator keeps no time: 0 cycles.
    fmt::print("{}: {} ALU steps, {} cycles, {}\n", device->name(),
               report.counters.alu_reg_steps + report.counters.alu_imm_steps, report.cycles,
               got == want ? "right" : "WRONG");
    if (got != want) return tilewright::fail(tilewright::ErrorKind::Mismatch, "wrong result");
  }
  return {};
}

int main() {
  const tilewright::Status status = run();
  if (!status) fmt::print(stderr, "{}", tilewright::to_string(status.error()));
  return status ? 0 : 1;
}
