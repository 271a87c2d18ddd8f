#include "tilewright/runtime/fpga/uio.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "tilewright/base/environment.h"
#include "tilewright/base/file.h"

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSteps = "docs/fpga.md, \"On a board\", has the steps";

/// A number as files below /sys have it: `0x1000` or `4096`.
std::optional<uint64_t> number_in(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<uint64_t> number_of_file(const std::string& path) {
  const Result<std::string> text = read_file(path);
  const auto value = text ? number_in(*text) : std::nullopt;
  if (value) return *value;
  return fail(ErrorKind::Device, fmt::format("'{}' has no number", path),
              text ? "it has \"" + *text + "\"" : text.error().what, kSteps);
}

/// A part of a device's file in this process.
class Mapping {
 public:
  static Result<Mapping> make(const std::string& path, uint64_t bytes, uint64_t offset) {
    const int file = ::open(path.c_str(), O_RDWR | O_SYNC | O_CLOEXEC);
    if (file < 0)
      return fail(ErrorKind::Device, fmt::format("cannot open '{}'", path), std::strerror(errno),
                  errno == EACCES ? "run as a user who may read and write it" : kSteps);
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                      static_cast<off_t>(offset));
    const int error = errno;
    ::close(file);
    if (at == MAP_FAILED)
      return fail(ErrorKind::Device, fmt::format("cannot map {} bytes of '{}'", bytes, path),
                  std::strerror(error), kSteps);
    return Mapping(static_cast<char*>(at), bytes);
  }
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  char* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Mapping(char* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  char* data_;
  uint64_t bytes_;
};

/// Writes to a file of the kernel's: it is neither made nor replaced.
Status write_attribute(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (written) return {};
  return fail(ErrorKind::Device, fmt::format("cannot write '{}' to '{}'", text, path),
              std::strerror(error),
              error == EACCES ? "run as a user who may load bitstreams" : kSteps);
}

class UioBoard final : public Board {
 public:
  UioBoard(std::string root, std::string name, Mapping registers, Mapping memory, uint64_t address)
      : root_(std::move(root)),
        name_(std::move(name)),
        registers_(std::move(registers)),
        memory_(std::move(memory)),
        address_(address) {}

  std::string name() const override { return name_; }
  Status write(uint32_t offset, uint32_t value) override {
    TW_TRY_STATUS(inside(offset));
    std::atomic_thread_fence(std::memory_order_seq_cst);  // behind what the memory was given
    *at(offset) = value;
    return {};
  }
  Result<uint32_t> read(uint32_t offset) override {
    TW_TRY_STATUS(inside(offset));
    const uint32_t value = *at(offset);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return value;
  }
  BoardMemory memory() const override { return {memory_.data(), memory_.bytes(), address_}; }

  bool has_bitstream(uint32_t identity) const override {
    return fs::exists(root_ + kFpgaManager + "/firmware") &&
           fs::exists(fmt::format("{}{}/{}", root_, kFirmwareFolder, bitstream_name(identity)));
  }
  Status configure(uint32_t identity) override {
    const std::string manager = root_ + kFpgaManager;
    if (fs::exists(manager + "/flags"))  // 0: the whole FPGA
      TW_TRY_STATUS(write_attribute(manager + "/flags", "0"));
    TW_TRY_STATUS(write_attribute(manager + "/firmware", bitstream_name(identity)));
    const auto begin = std::chrono::steady_clock::now();
    uint32_t there = 0;
    while ((there = TW_TRY(read(kIdentityRegister))) != identity) {
      if (std::chrono::steady_clock::now() - begin > kConfiguring)
        return fail(ErrorKind::Device, fmt::format("{} has no design after configuring", name_),
                    fmt::format("needed is 0x{:08x}, there is 0x{:08x}; the FPGA manager says: {}",
                                identity, there, read_file(manager + "/state").value_or("nothing")),
                    fmt::format("is {} made of this program, and for this board?",
                                bitstream_name(identity)));
      std::this_thread::yield();
    }
    return {};
  }

 private:
  static constexpr std::chrono::seconds kConfiguring{2};  // after the write: it returns at the end

  Status inside(uint32_t offset) const {
    if (offset % 4 == 0 && offset + uint64_t{4} <= registers_.bytes()) return {};
    return fail(ErrorKind::Device, fmt::format("{} has no register at 0x{:x}", name_, offset),
                fmt::format("0x{:x} bytes are mapped", registers_.bytes()),
                "give it 64 KiB in the design's address map and in the device tree");
  }
  volatile uint32_t* at(uint32_t offset) {
    return reinterpret_cast<volatile uint32_t*>(registers_.data() + offset);
  }

  std::string root_, name_;
  Mapping registers_, memory_;
  uint64_t address_;
};

/// `uio0` of the device with that name.
Result<std::string> find_uio(const std::string& root, const std::string& wanted) {
  std::string seen;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root + kUioClass, error)) {
    std::string name = read_file(entry.path().string() + "/name").value_or("");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    if (name == wanted) return entry.path().filename().string();
    seen += fmt::format("{}'{}'", seen.empty() ? "" : ", ", name);
  }
  return fail(ErrorKind::Device, fmt::format("no device of UIO is called '{}'", wanted),
              fmt::format("looked in {}{}: {}", root, kUioClass,
                          error          ? "there is no such folder"
                          : seen.empty() ? "it is empty"
                                         : seen),
              kSteps);
}

/// `0x30000000+0x1000000` as address and bytes.
std::optional<std::pair<uint64_t, uint64_t>> range_in(const std::string& text) {
  const size_t plus = text.find('+');
  if (plus == std::string::npos) return std::nullopt;
  const auto address = number_in(std::string_view(text).substr(0, plus));
  const auto bytes = number_in(std::string_view(text).substr(plus + 1));
  if (!address || !bytes || *bytes == 0) return std::nullopt;
  return std::pair(*address, *bytes);
}

struct SharedMemory {
  Mapping mapping;
  uint64_t address;
};
Result<SharedMemory> map_memory(const std::string& root, const std::string& name) {
  if (const auto range = range_in(name))
    return SharedMemory{TW_TRY(Mapping::make(root + "/dev/mem", range->second, range->first)),
                        range->first};
  const std::string folder = fmt::format("{}{}/{}", root, kDmaClass, name);
  if (!fs::exists(folder))
    return fail(ErrorKind::Device, fmt::format("there is no memory '{}' to share", name),
                fmt::format("looked for {}", folder),
                fmt::format("load the module u-dma-buf: modprobe u-dma-buf {}=0x4000000", name));
  const uint64_t bytes = TW_TRY(number_of_file(folder + "/size"));
  const uint64_t address = TW_TRY(number_of_file(folder + "/phys_addr"));
  return SharedMemory{TW_TRY(Mapping::make(root + "/dev/" + name, bytes, 0)), address};
}

}  // namespace

Result<std::unique_ptr<Board>> open_uio(const BoardNames& names, const std::string& root) {
  const std::string top = root.empty() ? environment("TILEWRIGHT_BOARD_ROOT").value_or("") : root;
  const std::string uio = TW_TRY(find_uio(top, names.registers));
  const uint64_t bytes =
      TW_TRY(number_of_file(fmt::format("{}{}/{}/maps/map0/size", top, kUioClass, uio)));
  Mapping registers = TW_TRY(Mapping::make(top + "/dev/" + uio, bytes, 0));
  SharedMemory memory = TW_TRY(map_memory(top, names.memory));
  return std::unique_ptr<Board>(std::make_unique<UioBoard>(
      top, "/dev/" + uio, std::move(registers), std::move(memory.mapping), memory.address));
}

}  // namespace tilewright::runtime
