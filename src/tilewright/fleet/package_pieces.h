// A package as pieces that travel by themselves, so that weights which did not change stay where
// they are.
//
// A package is a tar: the manifest and the code differ from build to build, the weights often do
// not. The file is cut where the bytes of a large member begin and end:
//
//   | headers, manifest.json, code/... | weights.bin | headers, records.jsonl, end |
//   | piece 0                          | piece 1     | piece 2                     |
//
// The pieces in a row are the file again, byte by byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::fleet {

struct Piece {
  std::string sha256;
  std::string_view bytes;  ///< of the file that was cut
  bool promised = false;   ///< the hash is what the package says it is
};

/// `file`: a package. `members`: what its manifest says of parts of `file`; hashing these again
/// would take longer than running a package. `large`: members of at least so many bytes are pieces
/// of their own. errors: Package (it is no tar).
Result<std::vector<Piece>> cut_package(std::string_view file,
                                       const std::vector<Piece>& members = {},
                                       size_t large = 256 << 10);

/// Bytes with a hash that was promised have to be looked at before anybody else sees them.
/// errors: Package (they are damaged).
Status check_piece(const Piece& piece);

}  // namespace tilewright::fleet
