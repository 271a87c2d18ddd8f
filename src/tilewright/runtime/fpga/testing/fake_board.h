// For tests: a board as files, below a folder that open_uio takes for `/`. A thread is its design:
// it waits for the start bit, calls a function and says that it is done. It plays the kernel's FPGA
// manager, too.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "tilewright/base/file.h"
#include "tilewright/runtime/fpga/uio.h"

namespace tilewright::runtime::testing {

class FakeBoard {
 public:
  static constexpr uint64_t kRegisters = 65536, kMemory = 65536, kAddress = 0x30000000;
  static constexpr uint64_t kCycles = 77;

  std::string problem;

  FakeBoard() {
    char folder[] = "/tmp/tw_board_XXXXXX";
    if (::mkdtemp(folder) == nullptr) problem = "no folder";
    root_ = folder;
    const std::string uio = root_ + kUioClass + "/uio3", dma = root_ + kDmaClass + "/udmabuf0";
    for (const std::string& path : {uio + "/maps/map0", dma, root_ + "/dev"})
      std::filesystem::create_directories(path);
    put(uio + "/name", "tilewright\n");
    put(uio + "/maps/map0/size", "0x10000\n");
    put(dma + "/size", "65536\n");
    put(dma + "/phys_addr", "0x30000000\n");
    registers_ = device("uio3", kRegisters);
    memory_ = device("udmabuf0", kMemory);
  }
  FakeBoard(const FakeBoard&) = delete;
  ~FakeBoard() {
    ended_ = true;
    if (design_.joinable()) design_.join();
    ::munmap(registers_, kRegisters);
    ::munmap(memory_, kMemory);
    std::filesystem::remove_all(root_);
  }

  const std::string& root() const { return root_; }
  void set(uint32_t offset, uint32_t value) { *at(offset) = value; }
  uint32_t get(uint32_t offset) const { return *at(offset); }
  /// Puts a bitstream where the board looks for it. `becomes`: what is there once it is loaded.
  void offer(uint32_t identity, uint32_t becomes) {
    std::filesystem::create_directories(root_ + kFpgaManager);
    std::filesystem::create_directories(root_ + kFirmwareFolder);
    put(root_ + kFpgaManager + "/firmware", "");
    put(root_ + kFpgaManager + "/state", "operating");
    put(root_ + kFirmwareFolder + "/" + bitstream_name(identity), std::to_string(becomes));
    managed_ = true;
  }
  void offer(uint32_t identity) { offer(identity, identity); }
  /// Where argument `a` begins.
  char* argument(uint32_t a) const {
    const uint64_t low = *at(kArgumentRegister + a * kArgumentStride);
    return memory_ + (low - kAddress);
  }
  /// A design that does `work` whenever it is started.
  void start(uint32_t identity, std::function<void(FakeBoard&)> work) {
    set(kIdentityRegister, identity);
    set(kControlRegister, 4);
    design_ = std::thread([this, work = std::move(work)] {
      while (!ended_) {
        std::this_thread::yield();
        if (managed_) load_bitstream();
        if ((*at(kControlRegister) & 1) == 0) continue;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (work) work(*this);
        set(kCyclesRegister, kCycles);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        set(kControlRegister, 6);
      }
    });
  }

 private:
  void put(const std::string& path, const std::string& text) {
    if (!write_file(path, text)) problem = "cannot write " + path;
  }
  char* device(const char* name, uint64_t bytes) {
    const std::string path = root_ + "/dev/" + name;
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) problem = "no " + path;
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return static_cast<char*>(mapped);
  }
  void load_bitstream() {
    const std::string firmware = root_ + kFpgaManager + "/firmware";
    const std::string name = read_file(firmware).value_or("");
    if (name.empty()) return;
    put(firmware, "");
    const auto bitstream = read_file(root_ + kFirmwareFolder + "/" + name);
    if (!bitstream) return;
    std::memset(registers_ + kTableRegister, 0, kRegisters - kTableRegister);
    set(kIdentityRegister, static_cast<uint32_t>(std::stoul(*bitstream)));
  }
  volatile uint32_t* at(uint32_t offset) const {
    return reinterpret_cast<volatile uint32_t*>(registers_ + offset);
  }

  std::string root_;
  char *registers_ = nullptr, *memory_ = nullptr;
  std::atomic<bool> ended_ = false, managed_ = false;
  std::thread design_;
};

}  // namespace tilewright::runtime::testing
