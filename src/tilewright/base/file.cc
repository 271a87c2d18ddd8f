#include "tilewright/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tilewright/base/output_file.h"

namespace tilewright {
namespace {

tl::unexpected<Error> io_error(const char* verb, const std::string& path) {
  return fail(ErrorKind::Io, fmt::format("cannot {} '{}'", verb, path), std::strerror(errno));
}

/// Closes a file descriptor at the end of a scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<MappedFile> map_file(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return io_error("open", path);
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) return io_error("open", path);
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return io_error("open", path);
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile{};
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (memory == MAP_FAILED) return io_error("map", path);
  std::shared_ptr<void> owner(memory, [size](void* p) { ::munmap(p, size); });
  return MappedFile{std::move(owner), {static_cast<const char*>(memory), size}};
}

Result<std::string> read_file(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return io_error("open", path);
  std::string contents;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", path);
    if (got == 0) return contents;
    contents.append(chunk, static_cast<size_t>(got));
  }
}

Status write_file(const std::string& path, std::string_view contents) {
  OutputFile file = TW_TRY(OutputFile::create(path));
  TW_TRY_STATUS(file.append(contents));
  return file.publish();
}

}  // namespace tilewright
