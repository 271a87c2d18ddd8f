#include "tilewright/fleet/package_pieces.h"

#include <fmt/format.h>

#include "tilewright/base/file.h"

namespace tilewright::fleet {
namespace {

constexpr size_t kTarBlock = 512;
constexpr size_t kSizeAt = 124, kSizeLength = 12;  ///< of the octal size in a tar header

/// The size in a tar header; nothing where there are other characters than octal digits.
Result<size_t> size_in(std::string_view header) {
  size_t size = 0;
  for (const char c : header.substr(kSizeAt, kSizeLength)) {
    if (c == '\0' || c == ' ') continue;
    if (c < '0' || c > '7')
      return fail(ErrorKind::Package, "this is no package", "a size in it is not a number");
    size = size * 8 + static_cast<size_t>(c - '0');
  }
  return size;
}

}  // namespace

Result<std::vector<Piece>> cut_package(std::string_view file, const std::vector<Piece>& members,
                                       size_t large) {
  std::vector<Piece> pieces;
  size_t begin = 0;
  const auto cut_at = [&](size_t end) {
    if (end == begin) return;
    const std::string_view bytes = file.substr(begin, end - begin);
    begin = end;
    for (const Piece& member : members)
      if (member.bytes.data() == bytes.data() && member.bytes.size() == bytes.size()) {
        pieces.push_back({member.sha256, bytes, true});
        return;
      }
    pieces.push_back({sha256(bytes), bytes});
  };
  for (size_t at = 0; at + kTarBlock <= file.size() && file[at] != '\0';) {
    const size_t size = TW_TRY(size_in(file.substr(at, kTarBlock)));
    const size_t data = at + kTarBlock;
    if (size > file.size() - data)
      return fail(
          ErrorKind::Package, "this package is cut off",
          fmt::format("a member of {} bytes begins at byte {} of {}", size, data, file.size()));
    if (size >= large) {
      cut_at(data);
      cut_at(data + size);
    }
    at = data + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
  cut_at(file.size());
  return pieces;
}

Status check_piece(const Piece& piece) {
  if (!piece.promised) return {};
  const std::string found = sha256(piece.bytes);
  if (found == piece.sha256) return {};
  return fail(ErrorKind::Package, "the package is damaged",
              fmt::format("sha256 {} is expected of {} bytes in it, {} was found",
                          piece.sha256.substr(0, 12), piece.bytes.size(), found.substr(0, 12)),
              "copy or compile the package again");
}

}  // namespace tilewright::fleet
