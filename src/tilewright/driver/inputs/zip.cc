// source: APPNOTE.TXT, the format's description by PKWARE, sections 4.3 and 4.4.
#include "tilewright/driver/inputs/zip.h"

#include <fmt/format.h>

#include <array>
#include <climits>
#include <cstdint>
#include <cstring>

#include "tilewright/driver/inputs/stb.h"

namespace tilewright::driver {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalSize = 30, kEntrySize = 46, kEndSize = 22;
constexpr uint32_t kElsewhere = 0xffffffff;  // the number is in an extension for large archives

/// Little-endian numbers at a place in the archive. requires: they are inside.
struct Bytes {
  std::string_view text;
  uint32_t u16(size_t at) const {
    return static_cast<uint8_t>(text[at]) |
           static_cast<uint32_t>(static_cast<uint8_t>(text[at + 1])) << 8;
  }
  uint32_t u32(size_t at) const { return u16(at) | u16(at + 2) << 16; }
};

void put16(std::string& to, uint32_t value) {
  to += static_cast<char>(value & 0xff);
  to += static_cast<char>(value >> 8 & 0xff);
}
void put32(std::string& to, uint32_t value) {
  put16(to, value & 0xffff);
  put16(to, value >> 16);
}

uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0xedb88320u : 0);
    }
    return t;
  }();
  uint32_t sum = ~0u;
  for (const char c : bytes) sum = sum >> 8 ^ table[(sum ^ static_cast<uint8_t>(c)) & 0xff];
  return ~sum;
}

/// Where the directory ends, or npos: the last signature, since a comment may follow it.
size_t find_end(const Bytes& file) {
  if (file.text.size() < kEndSize) return std::string_view::npos;
  for (size_t at = file.text.size() - kEndSize + 1; at-- > 0;) {
    if (file.text.size() - at > kEndSize + 0xffff) break;
    if (file.u32(at) == kEnd) return at;
  }
  return std::string_view::npos;
}

/// What the directory says of a member.
struct Entry {
  std::string name;
  uint32_t flags = 0, method = 0, sum = 0, packed = 0, size = 0, local = 0;
};

Result<std::string> unpack(const Bytes& file, const Entry& entry) {
  const auto bad = [&](const char* why) {
    return fail(ErrorKind::Parse, fmt::format("member '{}' is damaged", entry.name), why);
  };
  if (entry.flags & 1)
    return fail(ErrorKind::Unsupported, fmt::format("member '{}' is encrypted", entry.name));
  if (entry.packed == kElsewhere || entry.size == kElsewhere || entry.local == kElsewhere)
    return fail(ErrorKind::Unsupported, fmt::format("member '{}' has 4 GB or more", entry.name));
  const size_t total = file.text.size();
  if (entry.local > total || total - entry.local < kLocalSize || file.u32(entry.local) != kLocal)
    return bad("it does not begin where the directory says");
  const size_t start =
      entry.local + kLocalSize + file.u16(entry.local + 26) + file.u16(entry.local + 28);
  if (start > total || total - start < entry.packed) return bad("it is cut off");
  const std::string_view packed = file.text.substr(start, entry.packed);
  std::string bytes;
  if (entry.method == 0) {
    bytes = packed;
  } else if (entry.method == 8) {
    // Deflate makes at most 1032 bytes of one: no more memory than the archive can fill.
    if (entry.size > INT_MAX || packed.size() > INT_MAX || entry.size / 1032 > packed.size() + 1)
      return bad("its size is impossible");
    bytes.resize(entry.size);
    // The decoder looks a few bytes ahead; behind a member there is at least the directory.
    const std::string_view ahead = file.text.substr(start, size_t{entry.packed} + 8);
    if (ahead.size() > INT_MAX ||
        stbi_zlib_decode_noheader_buffer(bytes.data(), static_cast<int>(entry.size), ahead.data(),
                                         static_cast<int>(ahead.size())) < 0)
      return bad("it cannot be unpacked");
  } else {
    return fail(ErrorKind::Unsupported,
                fmt::format("member '{}' is packed by method {}", entry.name, entry.method),
                "methods 0 (stored) and 8 (deflate) are read");
  }
  if (bytes.size() != entry.size) return bad("its length is not what the directory says");
  if (crc32(bytes) != entry.sum) return bad("its checksum does not match");
  return bytes;
}

}  // namespace

bool is_zip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06");
}

Result<std::vector<ZipMember>> read_zip(std::string_view bytes, const std::string& place) {
  const auto bad = [&](const char* why) {
    return fail(ErrorKind::Parse, fmt::format("'{}' is not a whole zip archive", place), why);
  };
  const Bytes file{bytes};
  const size_t end = find_end(file);
  if (end == std::string_view::npos) return bad("it has no directory: it may be cut off");
  const size_t count = file.u16(end + 10), length = file.u32(end + 12);
  size_t at = file.u32(end + 16);
  if (count == 0xffff || at == kElsewhere)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' has 4 GB or more, or 65535 members", place));
  if (at > end || end - at < length) return bad("its directory is cut off");
  std::vector<ZipMember> members;
  for (size_t i = 0; i < count; ++i) {
    if (end - at < kEntrySize || file.u32(at) != kEntry) return bad("its directory is damaged");
    const size_t name = file.u16(at + 28), more = size_t{file.u16(at + 30)} + file.u16(at + 32);
    if (end - at < kEntrySize + name + more) return bad("its directory is damaged");
    Entry entry{std::string(bytes.substr(at + kEntrySize, name)),
                file.u16(at + 8),
                file.u16(at + 10),
                file.u32(at + 16),
                file.u32(at + 20),
                file.u32(at + 24),
                file.u32(at + 42)};
    Result<std::string> contents = unpack(file, entry);
    if (!contents) return tl::unexpected<Error>(std::move(contents.error()).at(place));
    members.push_back({std::move(entry.name), *std::move(contents)});
    at += kEntrySize + name + more;
  }
  return members;
}

std::string write_zip(const std::vector<ZipMember>& members) {
  std::string file, directory;
  for (const ZipMember& member : members) {
    const auto size = static_cast<uint32_t>(member.bytes.size());
    // The fields that the member and its directory entry share: version 2.0, names in UTF-8,
    // stored, the first of January 1980.
    std::string shared;
    for (const uint32_t value : {20u, 0x800u, 0u, 0u, 0x21u}) put16(shared, value);
    for (const uint32_t value : {crc32(member.bytes), size, size}) put32(shared, value);
    put16(shared, static_cast<uint32_t>(member.name.size()));
    put16(shared, 0);
    put32(directory, kEntry);
    put16(directory, 20);
    directory += shared;
    for (int i = 0; i < 3; ++i) put16(directory, 0);
    put32(directory, 0);
    put32(directory, static_cast<uint32_t>(file.size()));
    directory += member.name;
    put32(file, kLocal);
    file += shared + member.name + member.bytes;
  }
  const auto start = static_cast<uint32_t>(file.size());
  file += directory;
  put32(file, kEnd);
  put32(file, 0);
  for (int i = 0; i < 2; ++i) put16(file, static_cast<uint32_t>(members.size()));
  put32(file, static_cast<uint32_t>(directory.size()));
  put32(file, start);
  put16(file, 0);
  return file;
}

}  // namespace tilewright::driver
