#include "tilewright/runtime/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tilewright::runtime {
namespace {

#ifndef MFD_EXEC
constexpr unsigned MFD_EXEC = 0x10;  // asked for since Linux 6.3, an invalid flag before
#endif

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

int memory_file(const std::string& name) {
  const int fd = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_EXEC);
  return fd >= 0 ? fd : ::memfd_create(name.c_str(), MFD_CLOEXEC);
}

/// Opens a file under $TMPDIR, for systems without memory files that may hold code.
void* load_from_disk(std::string_view bytes) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/tilewright-XXXXXX", folder != nullptr ? folder : "/tmp");
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* handle = write_all(fd, bytes) ? ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  ::close(fd);
  ::unlink(path.c_str());
  return handle;
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::load(std::string_view bytes,
                                                     const std::string& name) {
  std::shared_ptr<Library> library(new Library);
  ::dlerror();
  // The descriptor stays open as long as the code is loaded: the loader knows libraries by path,
  // and a second library under the same descriptor number would be taken for the first.
  library->fd_ = memory_file(name);
  if (library->fd_ >= 0 && write_all(library->fd_, bytes))
    library->handle_ =
        ::dlopen(fmt::format("/proc/self/fd/{}", library->fd_).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle_ == nullptr) library->handle_ = load_from_disk(bytes);
  if (library->handle_ != nullptr) return std::shared_ptr<const Library>(std::move(library));
  const char* reason = ::dlerror();
  return fail(ErrorKind::Package, fmt::format("the code in '{}' cannot be loaded", name),
              reason != nullptr ? reason : std::strerror(errno));
}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
  if (fd_ >= 0) ::close(fd_);
}

void* Library::find(const std::string& symbol) const { return ::dlsym(handle_, symbol.c_str()); }

}  // namespace tilewright::runtime
