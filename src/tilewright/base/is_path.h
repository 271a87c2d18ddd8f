// A name of something built in, or the path of a file?
#pragma once

#include <string_view>

namespace tilewright {

/// Whether `text`, which may name something built in (`vta-paper`) or a file (`my.toml`), names a
/// file: it has a slash, or a dot with a letter behind its last one. A version is no path
/// (`aarch64-v8.2`); a file in the current folder without an ending is written `./my`.
constexpr bool is_path(std::string_view text) {
  if (text.find('/') != text.npos) return true;
  const size_t dot = text.rfind('.');
  if (dot == text.npos || dot + 1 == text.size()) return false;
  const char next = text[dot + 1];
  return (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
}

}  // namespace tilewright
