#include "tilewright/driver/npz.h"

#ifdef TILEWRIGHT_LIBZIP
#include <fmt/format.h>
#include <zip.h>

#include <memory>

#include "tilewright/base/npy.h"
#endif

namespace tilewright::driver {

#ifndef TILEWRIGHT_LIBZIP

Result<std::map<std::string, Array>> read_npz(const std::string& path) {
  return fail(ErrorKind::Unsupported, "cannot read '" + path + "'",
              "this build has no libzip, as portable programs have not");
}

#else

namespace {

constexpr uint64_t kMaxMember = uint64_t{1} << 34;  // bytes: refuses archives that unpack to more

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

Result<std::string> read_member(zip_t* archive, zip_uint64_t index, const zip_stat_t& info) {
  if (info.size > kMaxMember)
    return fail(ErrorKind::Parse, fmt::format("'{}' has {} bytes", info.name, info.size));
  const std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(archive, index, 0));
  if (member == nullptr)
    return fail(ErrorKind::Parse, fmt::format("'{}' cannot be read", info.name),
                zip_strerror(archive));
  std::string bytes;
  for (char chunk[1 << 16];;) {
    const zip_int64_t count = zip_fread(member.get(), chunk, sizeof chunk);
    if (count < 0) return fail(ErrorKind::Parse, fmt::format("'{}' is damaged", info.name));
    if (count == 0) return bytes;
    bytes.append(chunk, static_cast<size_t>(count));
    if (bytes.size() > info.size)
      return fail(ErrorKind::Parse, fmt::format("'{}' is longer than its entry says", info.name));
  }
}

}  // namespace

Result<std::map<std::string, Array>> read_npz(const std::string& path) {
  int code = 0;
  const std::unique_ptr<zip_t, CloseArchive> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    return fail(code == ZIP_ER_NOENT ? ErrorKind::Io : ErrorKind::Parse,
                fmt::format("cannot read '{}'", path), why, "numpy.savez writes such files");
  }
  std::map<std::string, Array> arrays;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); ++i) {
    zip_stat_t info;
    if (zip_stat_index(archive.get(), i, 0, &info) != 0 || info.name == nullptr)
      return fail(ErrorKind::Parse, fmt::format("'{}' has a damaged directory", path));
    std::string name = info.name;
    Result<std::string> bytes = read_member(archive.get(), i, info);
    if (!bytes) return tl::unexpected<Error>(std::move(bytes.error()).at(path));
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    Result<Array> array = parse_npy(*bytes, path + ":" + name);
    if (!array) return tl::unexpected<Error>(std::move(array.error()));
    arrays[name] = *std::move(array);
  }
  return arrays;
}

#endif

}  // namespace tilewright::driver
