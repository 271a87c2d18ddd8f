#include "tilewright/accel/common/dump_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tilewright/base/file.h"

namespace tilewright::accel {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";

tl::unexpected<Error> io_error(const char* verb, const fs::path& path,
                               const std::error_code& code) {
  return fail(ErrorKind::Io, fmt::format("cannot {} '{}'", verb, path.string()), code.message());
}

/// Absent, empty, or of the same format.
Status check_replaceable(const fs::path& folder, std::string_view format) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(folder, code);
  if (status.type() == fs::file_type::not_found) return {};
  if (!fs::is_directory(status))
    return fail(ErrorKind::Io, fmt::format("'{}' is in the way of a dump", folder.string()),
                "it is not a folder", "name another folder");
  if (fs::is_empty(folder, code)) return {};
  const Result<std::string> manifest = read_file((folder / kManifest).string());
  if (manifest && manifest->find(format) != std::string::npos) return {};
  return fail(ErrorKind::Io, fmt::format("folder '{}' holds other files", folder.string()),
              "only an empty folder or an earlier dump is replaced", "name another folder");
}

Status put_in_place(const fs::path& made, const fs::path& folder) {
  std::error_code code;
  const fs::path old = folder.string() + fmt::format(".old.{}", ::getpid());
  const bool there = fs::exists(folder, code);
  if (there) fs::rename(folder, old, code);
  if (code) return io_error("replace", folder, code);
  fs::rename(made, folder, code);
  if (code) {
    const Status failed = io_error("create", folder, code);
    if (there) fs::rename(old, folder, code);
    return failed;
  }
  if (there) fs::remove_all(old, code);
  return {};
}

Status write_all(const fs::path& folder, const std::map<std::string, std::string>& files) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return io_error("create", folder, code);
  for (const auto& [name, contents] : files)
    TW_TRY_STATUS(write_file((folder / name).string(), contents));
  return {};
}

}  // namespace

Status write_dump_folder(const std::string& folder, std::string_view format,
                         const std::map<std::string, std::string>& files) {
  fs::path target = fs::path(folder).lexically_normal();
  if (target.filename().empty()) target = target.parent_path();
  TW_TRY_STATUS(check_replaceable(target, format));
  const fs::path made = target.string() + fmt::format(".tmp.{}", ::getpid());
  Status status = write_all(made, files);
  if (status) status = put_in_place(made, target);
  if (!status) {
    std::error_code ignored;
    fs::remove_all(made, ignored);
  }
  return status;
}

Status DumpFolder::check_name(const std::string& name) const {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorKind::Invalid, fmt::format("file name '{}' {}", name, why));
  };
  const auto plain = [](unsigned char c) { return c > ' ' && c != 0x7f && c != '\\'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), plain))
    return bad("is empty or has spaces, control characters or backslashes");
  const fs::path path(name);
  if (path.is_absolute()) return bad("is not relative to the folder");
  fs::path walked(folder_);
  std::error_code code;
  for (const fs::path& part : path) {
    if (part == "..") return bad("leads out of the folder");
    walked /= part;
    const fs::file_status status = fs::symlink_status(walked, code);
    if (fs::is_symlink(status)) return bad("is or goes through a link");
    if (fs::exists(status) && !fs::is_directory(status) && !fs::is_regular_file(status))
      return bad("is not a regular file");
  }
  return {};
}

Result<const std::string*> DumpFolder::read(const std::string& name, uint64_t most) {
  if (const auto found = files_.find(name); found != files_.end()) return &found->second;
  TW_TRY_STATUS(check_name(name));
  const fs::path path = fs::path(folder_) / name;
  std::error_code code;
  const uint64_t size = fs::file_size(path, code);
  if (!code && size > most)
    return fail(ErrorKind::Invalid,
                fmt::format("file '{}' has {} bytes, more than {}", name, size, most));
  return &files_.emplace(name, TW_TRY(read_file(path.string()))).first->second;
}

int json_depth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace tilewright::accel
