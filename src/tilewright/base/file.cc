#include "tilewright/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) return io_error("write", path);
  return {};
}

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
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (file.fd < 0) return io_error("create", path);
  Status status = write_all(file.fd, contents, path);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0) status = io_error("create", path);
  if (!status) ::unlink(temporary.c_str());
  return status;
}

std::string sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace tilewright
