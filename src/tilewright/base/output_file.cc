#include "tilewright/base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

namespace tilewright {
namespace {

namespace fs = std::filesystem;

/// What a path leads to.
struct Target {
  enum class Kind { Stdout, Descriptor, Stream, Folder, File };
  Kind kind = Kind::File;
  std::string path;                 ///< behind all links
  int descriptor = -1;              ///< of Kind::Descriptor
  std::optional<struct stat> info;  ///< absent if nothing is there yet
};

tl::unexpected<Error> cannot_write(const std::string& path, std::string why, std::string fix = {}) {
  return fail(ErrorKind::Io, fmt::format("cannot write '{}'", path), std::move(why),
              std::move(fix));
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// N if `path` is this process' /proc/self/fd/N: what a shell redirected must not be opened anew,
/// which would begin at its start again.
std::optional<int> own_descriptor(const std::string& path) {
  std::error_code error;
  const std::string folder = fs::canonical(folder_of(path), error).string();
  if (error || folder != fmt::format("/proc/{}/fd", ::getpid())) return std::nullopt;
  const std::string name = fs::path(path).filename().string();
  if (name.empty() || name.size() > 6 || name.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(name);
}

/// Follows links one by one. errors: Io.
Result<Target> resolve(const std::string& path) {
  Target target;
  target.path = path;
  if (path == "-") {
    target.kind = Target::Kind::Stdout;
    return target;
  }
  constexpr int kMostLinks = 40;
  for (int links = 0; links < kMostLinks; ++links) {
    struct stat info{};
    if (::lstat(target.path.c_str(), &info) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return target;
      return cannot_write(path, std::strerror(errno));
    }
    if (S_ISLNK(info.st_mode)) {
      if (const std::optional<int> fd = own_descriptor(target.path)) {
        target.kind = *fd == 1 ? Target::Kind::Stdout : Target::Kind::Descriptor;
        target.descriptor = *fd;
        return target;
      }
      std::error_code error;
      const fs::path next = fs::read_symlink(target.path, error);
      if (error) return cannot_write(path, error.message());
      target.path =
          next.is_absolute() ? next.string() : folder_of(target.path) + "/" + next.string();
      continue;
    }
    target.info = info;
    target.kind = S_ISREG(info.st_mode)   ? Target::Kind::File
                  : S_ISDIR(info.st_mode) ? Target::Kind::Folder
                                          : Target::Kind::Stream;
    return target;
  }
  return cannot_write(path, "its links lead in a circle");
}

/// Whether a file can be made or replaced in `folder`.
Status check_folder(const std::string& path, const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored))
    return cannot_write(path, fmt::format("the folder '{}' does not exist", folder),
                        fmt::format("mkdir -p {}", folder));
  if (!fs::is_directory(folder, ignored))
    return cannot_write(path, fmt::format("'{}' is no folder", folder));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return cannot_write(path, fmt::format("you may not write to the folder '{}'", folder));
  return {};
}

Status check_no_input(const std::string& path, const struct stat& info,
                      const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    struct stat other{};
    if (::stat(input.c_str(), &other) != 0 || !S_ISREG(other.st_mode)) continue;
    if (other.st_dev == info.st_dev && other.st_ino == info.st_ino)
      return fail(ErrorKind::Usage, fmt::format("the output '{}' is an input", path),
                  fmt::format("it is the same file as '{}', which would be lost", input),
                  "name another output");
  }
  return {};
}

}  // namespace

tl::unexpected<Error> OutputFile::error(const char* verb) const {
  return fail(ErrorKind::Io,
              fmt::format("cannot {} {}", verb, path_ == "-" ? "stdout" : "'" + path_ + "'"),
              std::strerror(errno));
}

Status OutputFile::create_temporary(const std::string& target) {
  constexpr int kTries = 100;
  target_ = target;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = fmt::format("{}/.tilewright.{}.{}", folder_of(target), ::getpid(), i);
    fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno == EEXIST) continue;
    if (fd_ >= 0) temporary_ = name;
    break;
  }
  return fd_ >= 0 ? Status{} : error("create");
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  const Target target = TW_TRY(resolve(path));
  OutputFile file(path);
  switch (target.kind) {
    case Target::Kind::Stdout:
      return file;
    case Target::Kind::Folder:
      errno = EISDIR;
      return file.error("write");
    case Target::Kind::Descriptor:
      file.fd_ = ::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 3);
      break;
    case Target::Kind::Stream:
      file.fd_ = ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
      break;
    case Target::Kind::File:
      TW_TRY_STATUS(file.create_temporary(target.path));
      if (!target.info) return file;
      // Who owns the file may be given by its owner only; then permissions are all that is kept.
      (void)!::fchown(file.fd_, target.info->st_uid, target.info->st_gid);
      (void)::fchmod(file.fd_, target.info->st_mode & 07777);
      return file;
  }
  if (file.fd_ < 0) return file.error("open");
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputFile::append(std::string_view bytes) {
  if (fd_ < 0)
    return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() ? Status{}
                                                                              : error("write");
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return error("write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status OutputFile::publish() {
  if (fd_ < 0) return std::fflush(stdout) == 0 ? Status{} : error("write");
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) return error("write");
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return error("create");
  temporary_.clear();
  return {};
}

bool is_stream(const std::string& path) {
  const Result<Target> target = resolve(path);
  return target && target->kind != Target::Kind::File && target->kind != Target::Kind::Folder;
}

Status check_output(const std::string& path, const std::vector<std::string>& inputs) {
  if (path.empty()) return {};
  const Target target = TW_TRY(resolve(path));
  switch (target.kind) {
    case Target::Kind::Stdout:
    case Target::Kind::Descriptor:
      return {};
    case Target::Kind::Folder:
      return cannot_write(path, "it is a folder", "name a file");
    case Target::Kind::File:
      if (target.info) TW_TRY_STATUS(check_no_input(path, *target.info, inputs));
      TW_TRY_STATUS(check_folder(path, folder_of(target.path)));
      break;
    case Target::Kind::Stream:
      break;
  }
  if (target.info && ::access(target.path.c_str(), W_OK) != 0)
    return cannot_write(path, "you may not write to it");
  return {};
}

Status check_output_folder(const std::string& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  fs::path there = fs::absolute(path, ignored).lexically_normal();
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  return check_folder(path, there.string());
}

}  // namespace tilewright
