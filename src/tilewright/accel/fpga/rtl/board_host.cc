// The program for the processor beside a design.
#include <fmt/format.h>

#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/accel/fpga/rtl/board_files.h"

namespace tilewright::fpga {
namespace {

/// Behind the includes and `kArguments`, `kIdentity`, `kRegisters`, `kMemory`.
constexpr const char* kBoardHost = R"c(
static int code = 4;  // what to return if the next step fails: no board, another design, files

[[noreturn]] static void stop(const std::string& what) { throw std::runtime_error(what); }

static std::string read_all(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) stop("cannot read " + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

static unsigned long number_of(const std::string& file) {
  return std::stoul(read_all(file), nullptr, 0);
}

static char* map(const std::string& file, unsigned long bytes) {
  const int opened = open(file.c_str(), O_RDWR | O_SYNC);
  if (opened < 0) stop("cannot open " + file);
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  close(opened);
  if (at == MAP_FAILED) stop("cannot map " + file);
  return static_cast<char*>(at);
}

static std::string find_uio(const std::string& root) {
  for (int n = 0; n < 64; ++n) {
    const std::string uio = "uio" + std::to_string(n);
    std::ifstream in(root + "/sys/class/uio/" + uio + "/name");
    std::string name;
    if (in >> name && name == kRegisters) return uio;
  }
  stop(std::string("no device of UIO is called ") + kRegisters);
}

static void run(const std::string& root) {
  const std::string uio = find_uio(root), dma = root + "/sys/class/u-dma-buf/" + kMemory;
  volatile uint32_t* const registers = reinterpret_cast<volatile uint32_t*>(
      map(root + "/dev/" + uio, number_of(root + "/sys/class/uio/" + uio + "/maps/map0/size")));
  const unsigned long bytes = number_of(dma + "/size"), address = number_of(dma + "/phys_addr");
  char* const memory = map(root + "/dev/" + kMemory, bytes);
  code = 8;
  if (registers[0x408 / 4] != kIdentity) stop("the board has another design");
  code = 1;
  unsigned long at = 0, index = 0;
  for (const Argument& argument : kArguments) {
    if (at + argument.bytes > bytes) stop(std::string(kMemory) + " is too small");
    if (!argument.writes) {
      const std::string data = read_all(std::string(argument.name) + ".bin");
      if (data.size() != argument.bytes)
        stop(std::string(argument.name) + ".bin must have " + std::to_string(argument.bytes) + " bytes");
      std::memcpy(memory + at, data.data(), data.size());
    }
    registers[(0x10 + 12 * index) / 4] = static_cast<uint32_t>(address + at);
    registers[(0x14 + 12 * index) / 4] = static_cast<uint32_t>(uint64_t{address + at} >> 32);
    at += (argument.bytes + 4095) / 4096 * 4096, ++index;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  registers[0] = 1;
  while ((registers[0] & 6) == 0) std::this_thread::yield();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  at = 0;
  for (const Argument& argument : kArguments) {
    if (argument.writes)
      std::ofstream(std::string(argument.name) + ".bin", std::ios::binary)
          .write(memory + at, static_cast<std::streamsize>(argument.bytes));
    at += (argument.bytes + 4095) / 4096 * 4096;
  }
  std::cout << "cycles: " << (uint64_t{registers[0x400 / 4]} | uint64_t{registers[0x404 / 4]} << 32)
            << "\n";
}

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::cerr << "host: " << error.what() << "\n";
    return code;
  }
  return 0;
}
)c";

}  // namespace

std::string board_host(const Design& design, const std::vector<HostArgument>& arguments,
                       const std::string& registers, const std::string& memory) {
  std::string rows;
  for (const HostArgument& a : arguments)
    rows += fmt::format("    {{\"{}\", {}, {}}},\n", a.name, a.bytes, a.writes);
  return fmt::format(R"c(// Runs {} on a board with Linux: host [ROOT]
// Build: g++ -std=c++17 -O2 host.cpp -o host
// Inputs are read from files NAME.bin, elements in row-major order; outputs are written to such
// files. ROOT is the folder with sys and dev, if not /.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

struct Argument {{
  const char* name;
  unsigned long bytes;
  bool writes;
}};
static const Argument kArguments[] = {{
{}}};
static const uint32_t kIdentity = 0x{:08x};
static const char *const kRegisters = "{}", *const kMemory = "{}";
)c",
                     design.name, rows, identity(design), registers, memory) +
         kBoardHost;
}

}  // namespace tilewright::fpga
