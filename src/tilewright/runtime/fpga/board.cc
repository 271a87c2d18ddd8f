#include "tilewright/runtime/fpga/board.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace tilewright::runtime {
namespace {

constexpr uint32_t kStart = 1, kDone = 2, kIdle = 4;

/// Puts the kernel's design on the board, and its numbers into the table.
Status prepare(Board& board, const BoardKernel& kernel) {
  TW_TRY_STATUS(check_identity(board, kernel.identity));
  if ((TW_TRY(board.read(kControlRegister)) & kIdle) == 0)  // no design is replaced at work
    return fail(ErrorKind::Device, fmt::format("the kernel on {} is at work", board.name()), {},
                "wait for who started it");
  if (TW_TRY(board.read(kIdentityRegister)) != kernel.identity)
    TW_TRY_STATUS(board.configure(kernel.identity));
  for (size_t n = 0; n < kernel.table.size(); ++n)
    TW_TRY_STATUS(board.write(static_cast<uint32_t>(kTableRegister + 4 * n), kernel.table[n]));
  return {};
}

Status write_address(Board& board, size_t argument, uint64_t address) {
  const auto at = static_cast<uint32_t>(kArgumentRegister + argument * kArgumentStride);
  TW_TRY_STATUS(board.write(at, static_cast<uint32_t>(address)));
  return board.write(at + 4, static_cast<uint32_t>(address >> 32));
}

/// Where each argument begins in the memory.
Result<std::vector<uint64_t>> places_of(const BoardMemory& memory,
                                        const std::vector<KernelArgument>& arguments) {
  std::vector<uint64_t> places;
  uint64_t end = 0;
  for (const KernelArgument& argument : arguments) {
    if (argument.same_as >= 0) {
      places.push_back(places[static_cast<size_t>(argument.same_as)]);
      continue;
    }
    places.push_back(end);
    end += (argument.bytes + kArgumentAlign - 1) / kArgumentAlign * kArgumentAlign;
  }
  if (end <= memory.bytes) return places;
  return fail(ErrorKind::Capacity, "the arguments do not fit into the board's memory",
              fmt::format("bytes: needs {} of {}", end, memory.bytes),
              "load u-dma-buf with a larger buffer");
}

}  // namespace

Status wait_for(Board& board, uint32_t offset, uint32_t bits, const std::string& of,
                double limit_seconds) {
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    const uint32_t value = TW_TRY(board.read(offset));
    if ((value & bits) != 0) return {};
    if (std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(limit_seconds))
      return fail(ErrorKind::Device,
                  fmt::format("{} on {} did not end within {} s", of, board.name(), limit_seconds),
                  fmt::format("register 0x{:03x} is 0x{:x}", offset, value),
                  "load its bitstream anew");
    std::this_thread::yield();
  }
}

Status check_identity(Board& board, uint32_t identity) {
  const uint32_t there = TW_TRY(board.read(kIdentityRegister));
  if (there == identity || board.has_bitstream(identity)) return {};
  return fail(ErrorKind::Package, fmt::format("{} has another design", board.name()),
              fmt::format("needed is 0x{:08x}, there is 0x{:08x}", identity, there),
              fmt::format("load the bitstream that was made of this program (`tilewright rtl`), or "
                          "put it at {}/{}, from where it is loaded",
                          kFirmwareFolder, bitstream_name(identity)));
}

std::string bitstream_name(uint32_t identity) {
  return fmt::format("tilewright-{:08x}.bin", identity);
}

Status Board::configure(uint32_t identity) {
  return fail(ErrorKind::Device, fmt::format("{} keeps the design that it has", name()),
              fmt::format("needed is 0x{:08x}", identity));
}

Result<uint64_t> run_kernel(Board& board, const BoardKernel& kernel,
                            const std::vector<KernelArgument>& arguments, double limit_seconds) {
  TW_TRY_STATUS(prepare(board, kernel));
  const BoardMemory memory = board.memory();
  if (memory.address % kArgumentAlign != 0)
    return fail(ErrorKind::Device,
                fmt::format("the memory of {} begins at an odd place", board.name()),
                fmt::format("at 0x{:x}, no multiple of {}", memory.address, kArgumentAlign));
  const std::vector<uint64_t> places = TW_TRY(places_of(memory, arguments));
  for (size_t a = 0; a < arguments.size(); ++a) {
    char* const there = memory.data + places[a];
    if (arguments[a].reads && arguments[a].data != nullptr)
      std::memcpy(there, arguments[a].data, arguments[a].bytes);
    TW_TRY_STATUS(write_address(board, a, memory.address + places[a]));
  }
  TW_TRY_STATUS(board.write(kControlRegister, kStart));
  TW_TRY_STATUS(wait_for(board, kControlRegister, kDone | kIdle, "the kernel", limit_seconds));
  for (size_t a = 0; a < arguments.size(); ++a)
    if (arguments[a].writes && arguments[a].data != nullptr)
      std::memcpy(arguments[a].data, memory.data + places[a], arguments[a].bytes);
  const uint64_t low = TW_TRY(board.read(kCyclesRegister));
  return low | uint64_t{TW_TRY(board.read(kCyclesRegister + 4))} << 32;
}

}  // namespace tilewright::runtime
