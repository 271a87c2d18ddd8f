#include "tilewright/runtime/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>

namespace tilewright::runtime {
namespace {

// source: POSIX.1-2017, pax, "ustar Interchange Format".
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
      magic[6], version[2], user[32], group[32], dev_major[8], dev_minor[8], prefix[155], pad[12];
};
static_assert(sizeof(Header) == kTarBlock);

constexpr uint64_t kLargestOctal = (uint64_t{1} << 33) - 1;  // eleven digits

/// Sum of all bytes, the checksum field itself counted as blanks.
unsigned checksum(const Header& header) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  const size_t begin = offsetof(Header, checksum), end = begin + sizeof header.checksum;
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof header; ++i) sum += i >= begin && i < end ? ' ' : bytes[i];
  return sum;
}

/// Octal digits, possibly between blanks, or GNU's big-endian binary form; false if neither.
template <size_t N>
bool read_number(const char (&field)[N], uint64_t* value) {
  *value = 0;
  if (static_cast<unsigned char>(field[0]) == 0x80) {
    for (size_t i = 1; i < N; ++i) {
      if (*value >> 55) return false;
      *value = *value << 8 | static_cast<unsigned char>(field[i]);
    }
    return true;
  }
  size_t i = 0, digits = 0;
  while (i < N && field[i] == ' ') ++i;
  for (; i < N && field[i] >= '0' && field[i] <= '7'; ++i, ++digits)
    *value = *value << 3 | static_cast<uint64_t>(field[i] - '0');
  for (; i < N; ++i)
    if (field[i] != ' ' && field[i] != '\0') return false;
  return digits > 0;
}

template <size_t N>
std::string read_text(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

bool all_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

tl::unexpected<Error> damaged(size_t offset, std::string what) {
  return fail(ErrorKind::Package, std::move(what), fmt::format("at byte {}", offset));
}

tl::unexpected<Error> no_archive() {
  return fail(ErrorKind::Package, "this is no package", "it is not a tar archive",
              "tilewright compile MODEL -o FILE.twm makes packages");
}

}  // namespace

Result<std::vector<TarMember>> read_tar(std::string_view archive) {
  std::vector<TarMember> members;
  std::set<std::string> names;
  for (size_t at = 0;;) {
    if (archive.size() - at < kTarBlock) {
      if (at == 0) return no_archive();
      return damaged(archive.size(), "the archive is cut off: its end mark is missing");
    }
    const std::string_view block = archive.substr(at, kTarBlock);
    if (at > 0 && all_zero(block)) return members;
    Header header;
    std::memcpy(&header, block.data(), sizeof header);
    uint64_t sum = 0, size = 0;
    const bool magic = std::memcmp(header.magic, "ustar", 5) == 0;
    if (!magic || !read_number(header.checksum, &sum) || sum != checksum(header))
      return at == 0 ? no_archive() : damaged(at, "an archive header is damaged");
    if (!read_number(header.size, &size)) return damaged(at, "an archive header has no size");
    std::string name = read_text(header.name);
    if (const std::string prefix = read_text(header.prefix); !prefix.empty() && prefix[0] != ' ')
      name = prefix + "/" + name;
    at += kTarBlock;
    if (size > archive.size() - at)
      return damaged(archive.size(),
                     fmt::format("the archive is cut off inside '{}': {} of {} bytes are there",
                                 name, archive.size() - at, size));
    const bool folder = header.type == '5', file = header.type == '0' || header.type == '\0';
    if (!folder && !file)
      return damaged(at - kTarBlock, fmt::format("'{}' is not a regular file", name));
    if (file && !names.insert(name).second)
      return damaged(at - kTarBlock, fmt::format("'{}' is in the archive twice", name));
    if (file) members.push_back({name, archive.substr(at, size)});
    at += std::min<size_t>(size + tar_padding(size), archive.size() - at);
  }
}

Result<std::string> tar_header(const std::string& name, uint64_t bytes) {
  Header header;
  std::memset(&header, 0, sizeof header);
  if (name.empty() || name.size() > sizeof header.name)
    return fail(ErrorKind::Package, fmt::format("'{}' is no name for a package member", name),
                fmt::format("1 to {} bytes are allowed", sizeof header.name));
  std::memcpy(header.name, name.data(), name.size());
  std::memcpy(header.mode, "0000644", 8);
  std::memcpy(header.uid, "0000000", 8);
  std::memcpy(header.gid, "0000000", 8);
  if (bytes <= kLargestOctal) {
    fmt::format_to_n(header.size, 11, "{:011o}", bytes);
  } else {
    header.size[0] = static_cast<char>(0x80);
    for (int i = 0; i < 8; ++i) header.size[11 - i] = static_cast<char>(bytes >> (8 * i));
  }
  std::memcpy(header.mtime, "00000000000", 12);
  header.type = '0';
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  fmt::format_to_n(header.checksum, 6, "{:06o}", checksum(header));
  header.checksum[7] = ' ';
  return std::string(reinterpret_cast<const char*>(&header), sizeof header);
}

}  // namespace tilewright::runtime
