// `vta:uio`: VTA behind registers, on a board or a model of one.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tilewright/accel/common/rtl/identity.h"
#include "tilewright/accel/vta/rtl/model.h"
#include "tilewright/accel/vta/rtl/rtl.h"

namespace tilewright::vta {
namespace {

// Registers. source: verilog/control.v.in, verilog/axi_top.v.in
constexpr uint32_t kVtaControl = 0x00, kVtaCycles = 0x04, kVtaCount = 0x08, kVtaAddress = 0x0c,
                   kVtaBases = 0x10, kVtaLastBase = 0x20, kVtaStatus = 0x28, kVtaDispatched = 0x2c,
                   kVtaWindow = 0x410;
constexpr uint32_t kVtaStart = 1, kVtaFinished = 2, kVtaError = 1;
constexpr double kLaunchSeconds = 60;

class BoardDevice final : public Device {
 public:
  BoardDevice(const Config& config, uint64_t dram_bytes, std::unique_ptr<runtime::Board> board)
      : config_(config), limit_(dram_bytes), board_(std::move(board)), memory_(board_->memory()) {}

  std::string name() const override { return "vta:uio"; }
  const Config& config() const override { return config_; }

  Status write(uint64_t address, std::string_view bytes) override {
    TW_TRY_STATUS(in_range(address, bytes.size()));
    std::memcpy(memory_.data + address, bytes.data(), bytes.size());
    return {};
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    TW_TRY_STATUS(in_range(address, bytes));
    std::memcpy(into, memory_.data + address, bytes);
    return {};
  }

  Result<LaunchReport> launch(const std::vector<Insn>& insns, const LaunchOptions&) override {
    const uint64_t at = (limit_ + kPage - 1) / kPage * kPage;
    TW_TRY_STATUS(place(insns, at));
    TW_TRY_STATUS(board_->write(kVtaWindow, static_cast<uint32_t>(memory_.address)));
    TW_TRY_STATUS(board_->write(kVtaWindow + 4, static_cast<uint32_t>(memory_.address >> 32)));
    for (uint32_t base = kVtaBases; base <= kVtaLastBase; base += 4)
      TW_TRY_STATUS(board_->write(base, 0));
    TW_TRY_STATUS(board_->write(kVtaCount, static_cast<uint32_t>(insns.size())));
    TW_TRY_STATUS(board_->write(kVtaAddress, static_cast<uint32_t>(at)));
    TW_TRY_STATUS(board_->write(kVtaControl, kVtaStart));
    const Status ended =
        runtime::wait_for(*board_, kVtaControl, kVtaFinished, "the launch", kLaunchSeconds);
    const uint32_t status = TW_TRY(board_->read(kVtaStatus));
    if (!ended || (status & kVtaError) != 0)
      return fail(
          ErrorKind::Device,
          ended ? fmt::format("VTA on {} found an error", board_->name()) : ended.error().what,
          fmt::format("status 0x{:x}, {} of {} instructions dispatched", status,
                      TW_TRY(board_->read(kVtaDispatched)), insns.size()),
          "check the program: `tilewright sim --check`; load VTA's bitstream anew");
    LaunchReport report;
    report.cycles = TW_TRY(board_->read(kVtaCycles));
    for (const Insn& insn : insns) rtl::count(config_, insn, report.counters);
    return report;
  }

 private:
  Status in_range(uint64_t address, uint64_t bytes) const {
    if (bytes <= limit_ && address <= limit_ - bytes) return {};
    return fail(ErrorKind::Invalid, "an access is outside of DRAM",
                fmt::format("{} bytes at 0x{:x}, DRAM has {} bytes", bytes, address, limit_));
  }

  /// Instructions lie behind the DRAM that programs know.
  Status place(const std::vector<Insn>& insns, uint64_t at) {
    const uint64_t bytes = insns.size() * sizeof(Word);
    if (at > memory_.bytes || bytes > memory_.bytes - at)
      return fail(ErrorKind::Capacity, "DRAM and instructions do not fit into the board's memory",
                  fmt::format("bytes: needs {} of {}", at + bytes, memory_.bytes),
                  "load u-dma-buf with a larger buffer");
    for (size_t i = 0; i < insns.size(); ++i) {
      if (Status fit = fits(config_, insns[i]); !fit)
        return tl::unexpected<Error>(std::move(fit.error()).at(fmt::format("instruction {}", i)));
      const Word word = encode(config_, insns[i]);
      std::memcpy(memory_.data + at + i * sizeof(Word), word.data(), sizeof(Word));
    }
    return {};
  }

  Config config_;
  uint64_t limit_;
  std::unique_ptr<runtime::Board> board_;
  runtime::BoardMemory memory_;
};

}  // namespace

uint32_t identity(const Config& config) {
  const Config usual;
  Config same = config;  // but for what same_architecture leaves out
  same.name = usual.name;
  same.clock_mhz = usual.clock_mhz;
  same.timing = usual.timing;
  same.extensions.pipelined_alu = usual.extensions.pipelined_alu;
  return accel::identity_of(to_toml(same));
}

Result<std::unique_ptr<Device>> make_board(const Config& config, uint64_t dram_bytes,
                                           std::unique_ptr<runtime::Board> board) {
  TW_TRY_STATUS(axi_supports(config));
  TW_TRY_STATUS(runtime::check_identity(*board, identity(config)));
  const runtime::BoardMemory memory = board->memory();
  constexpr uint64_t kMost = uint64_t{1} << 32;  // VTA's addresses
  if (dram_bytes > std::min(memory.bytes, kMost))
    return fail(ErrorKind::Capacity, "the program's DRAM does not fit into the board's memory",
                fmt::format("bytes: needs {} of {}", dram_bytes, std::min(memory.bytes, kMost)),
                "load u-dma-buf with a larger buffer");
  // What programs do not write is zero; on-chip memories keep what they have.
  std::memset(memory.data, 0, dram_bytes);
  return std::make_unique<BoardDevice>(config, dram_bytes, std::move(board));
}

}  // namespace tilewright::vta
