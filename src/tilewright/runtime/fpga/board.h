// A design on a board as its host sees it: registers, and memory that both reach. Boards through
// the kernel's UIO (uio.h) implement it, and in tests Verilog under Verilator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::runtime {

/// Memory without gaps that host and design share.
struct BoardMemory {
  char* data = nullptr;
  uint64_t bytes = 0;
  uint64_t address = 0;  ///< of its first byte, as the design sees it
};

class Board {
 public:
  virtual ~Board() = default;
  virtual std::string name() const = 0;  ///< for messages: `/dev/uio0`
  /// Registers of 32 bits; units: bytes, a multiple of 4. errors: Device.
  virtual Status write(uint32_t offset, uint32_t value) = 0;
  virtual Result<uint32_t> read(uint32_t offset) = 0;
  virtual BoardMemory memory() const = 0;
  /// Whether `configure` knows the bitstream of this design.
  virtual bool has_bitstream(uint32_t /*identity*/) const { return false; }
  /// Configures the FPGA with this design. requires: has_bitstream. errors: Device.
  virtual Status configure(uint32_t identity);
};

/// Where bitstreams lie on a board, and what that of a design is called:
/// `tilewright-1234abcd.bin`.
inline constexpr const char* kFirmwareFolder = "/lib/firmware";
std::string bitstream_name(uint32_t identity);

// Registers of our designs. source: docs/fpga-timing.md 6
constexpr uint32_t kControlRegister = 0x000;  ///< bit 0 start, 1 done, 2 idle, 3 ready
constexpr uint32_t kArgumentRegister = 0x010, kArgumentStride = 12;  ///< addresses of 64 bits
constexpr uint32_t kCyclesRegister = 0x400;                          ///< of the last run, 64 bits
constexpr uint32_t kIdentityRegister = 0x408;                        ///< which design this is
constexpr uint32_t kTableRegister = 0x1000;  ///< numbers of a design that serves several layers
constexpr uint32_t kTableEnd = 0x10000;      ///< the registers' addresses have 16 bits
constexpr uint64_t kArgumentAlign = 4096;    ///< no burst crosses a multiple of it

/// What a kernel reads or writes.
struct KernelArgument {
  void* data = nullptr;
  uint64_t bytes = 0;
  bool reads = true, writes = false;
  int same_as = -1;  ///< an argument before it whose memory it uses; then it has no `data`
};

/// What runs: the design that must be there, and its numbers.
struct BoardKernel {
  uint32_t identity = 0;
  std::vector<uint32_t> table = {};  ///< empty: its numbers are fixed
};

/// Configures the board if it has another design, fills the table, places the arguments in the
/// board's memory, in order, starts the kernel, waits for its end and copies back what it wrote.
/// Returns the cycles that it took.
/// errors: Package (another design, and no bitstream of this one), Capacity (needed and there),
/// Device (it is at work, does not end within `limit_seconds`, or cannot be configured).
Result<uint64_t> run_kernel(Board& board, const BoardKernel& kernel,
                            const std::vector<KernelArgument>& arguments,
                            double limit_seconds = 60);

/// errors: Package: `board` has another design, or none, and no bitstream of this one.
Status check_identity(Board& board, uint32_t identity);

/// Reads a register until one of `bits` is set. errors: Device, with what `of` has not done.
Status wait_for(Board& board, uint32_t offset, uint32_t bits, const std::string& of,
                double limit_seconds);

}  // namespace tilewright::runtime
