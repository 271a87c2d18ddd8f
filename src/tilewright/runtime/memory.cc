#include "tilewright/runtime/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tilewright::runtime {

Result<std::shared_ptr<void>> allocate(int64_t bytes, const std::string& purpose) {
  constexpr size_t kHuge = size_t{2} << 20;
  const auto wanted = static_cast<size_t>(bytes > 0 ? bytes : 1);
  const bool huge = wanted >= 2 * kHuge;
  const size_t size = huge ? (wanted + kHuge - 1) / kHuge * kHuge + kHuge : wanted;
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return fail(ErrorKind::Capacity, fmt::format("no memory for {}", purpose),
                fmt::format("{} bytes are needed: {}", bytes, std::strerror(errno)));
  void* data = base;
  if (huge) {
    const auto address = reinterpret_cast<uintptr_t>(base);
    data = reinterpret_cast<void*>((address + kHuge - 1) / kHuge * kHuge);
    ::madvise(data, size - kHuge,
              MADV_HUGEPAGE);  // only a hint: a refusal costs speed, not results
  }
  std::shared_ptr<void> region(base, [size](void* p) { ::munmap(p, size); });
  return std::shared_ptr<void>(std::move(region), data);
}

// base's map_file would bring its neighbour in that file, OpenSSL's hash, into the shared library.
Result<MappedFile> map_package(const std::string& path) {
  auto error = [&] {
    return fail(ErrorKind::Io, fmt::format("cannot open '{}'", path), std::strerror(errno));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return error();
  struct stat info{};
  void* data = MAP_FAILED;
  if (::fstat(fd, &info) == 0 && info.st_size > 0)
    data = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  const int reason = errno;
  ::close(fd);
  errno = S_ISDIR(info.st_mode) ? EISDIR : reason;
  if (data == MAP_FAILED && S_ISREG(info.st_mode) && info.st_size == 0)
    return fail(ErrorKind::Package, fmt::format("'{}' is empty", path));
  if (data == MAP_FAILED) return error();
  const auto size = static_cast<size_t>(info.st_size);
  std::shared_ptr<void> owner(data, [size](void* p) { ::munmap(p, size); });
  return MappedFile{std::move(owner), {static_cast<const char*>(data), size}};
}

}  // namespace tilewright::runtime
