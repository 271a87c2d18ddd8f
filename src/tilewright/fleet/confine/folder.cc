// All walks go by descriptors and follow no link: a path could be changed under them.
#include "tilewright/fleet/confine/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "tilewright/base/file.h"
#include "tilewright/fleet/confine/owned_fd.h"
#include "tilewright/fleet/sandbox.h"

namespace tilewright::fleet {
namespace {

constexpr int kDeepest = 32;
constexpr int64_t kBlock = 512;  ///< of st_blocks, whatever the file system has

int open_folder(int parent, const char* name) {
  return ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

enum class Next { Enter, Skip, Stop };

/// Calls `visit(folder, name, info, depth)` for all in a folder, which says what to do about it;
/// goes no deeper than kDeepest. `descriptor` becomes the walk's. False: it was stopped.
template <class Visit>
bool walk(int descriptor, int depth, const Visit& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(descriptor), ::closedir);
  if (folder == nullptr) {
    ::close(descriptor);
    return true;
  }
  while (const dirent* entry = ::readdir(folder.get())) {
    const char* name = entry->d_name;
    struct stat info{};
    if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0 ||
        ::fstatat(descriptor, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    const Next next = visit(descriptor, name, info, depth);
    if (next == Next::Stop) return false;
    if (next == Next::Skip || !S_ISDIR(info.st_mode) || depth >= kDeepest) continue;
    const int inner = open_folder(descriptor, name);
    if (inner >= 0 && !walk(inner, depth + 1, visit)) return false;
  }
  return true;
}

}  // namespace

Status hand_over(const std::string& folder, std::optional<uid_t> user) {
  OwnedFd top(open_folder(AT_FDCWD, folder.c_str()));
  const auto refused = [&](const std::string& what) {
    return fail(ErrorKind::Io, fmt::format("cannot use '{}'", what), std::strerror(errno));
  };
  if (!top || (user && ::fchown(top.get(), *user, *user) != 0)) return refused(folder);
  Status status;
  walk(top.release(), 0, [&](int parent, const char* name, const struct stat& info, int) {
    if (S_ISREG(info.st_mode) && info.st_nlink > 1)
      status =
          fail(ErrorKind::Invalid, fmt::format("'{}/.../{}' cannot be given away", folder, name),
               "it is linked elsewhere too, and would be written there");
    else if (user && ::fchownat(parent, name, *user, *user, AT_SYMLINK_NOFOLLOW) != 0)
      status = refused(name);
    return status ? Next::Enter : Next::Stop;
  });
  return status;
}

FolderUsage folder_usage(const std::string& folder, int64_t most_files) {
  FolderUsage usage;
  const int top = open_folder(AT_FDCWD, folder.c_str());
  if (top < 0) return usage;
  walk(top, 0, [&](int, const char*, const struct stat& info, int depth) {
    usage.bytes += info.st_blocks * kBlock;
    ++usage.files;
    usage.too_deep |= depth >= kDeepest;
    return usage.too_deep || usage.files > most_files ? Next::Stop : Next::Enter;
  });
  return usage;
}

void unlock_folders(const std::string& folder) {
  constexpr mode_t kOwn = 0700;
  const int top = open_folder(AT_FDCWD, folder.c_str());
  if (top < 0) return;
  walk(top, 0, [](int parent, const char* name, const struct stat& info, int) {
    if (S_ISDIR(info.st_mode) && (info.st_mode & kOwn) != kOwn)
      (void)!::fchmodat(parent, name, info.st_mode | kOwn, 0);
    return Next::Enter;
  });
}

Result<std::string> read_reply(const std::string& folder, const std::string& name,
                               int64_t most_bytes) {
  const auto bad = [&](std::string why) {
    return fail(ErrorKind::Invalid, fmt::format("the child left no usable '{}'", name),
                std::move(why));
  };
  OwnedFd place(open_folder(AT_FDCWD, folder.c_str()));
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = name.find('/', begin);
    const std::string part = name.substr(begin, end - begin);
    if (!place || part.empty() || part == "." || part == "..") return bad("it is no file there");
    // Opening a pipe does not wait.
    place = OwnedFd(end == std::string::npos
                        ? ::openat(place.get(), part.c_str(),
                                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                        : open_folder(place.get(), part.c_str()));
    if (!place) return bad(errno == ELOOP ? "it is a link" : std::strerror(errno));
  }
  struct stat info{};
  if (::fstat(place.get(), &info) != 0 || !S_ISREG(info.st_mode)) return bad("it is no file");
  if (info.st_nlink > 1) return bad("it is linked elsewhere too");
  if (info.st_size > most_bytes)
    return bad(fmt::format("it has {} bytes, more than {}", info.st_size, most_bytes));
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(place.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bad("it cannot be read");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace tilewright::fleet
