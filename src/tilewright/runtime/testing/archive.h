// Packages built by hand for tests.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/base/file.h"
#include "tilewright/runtime/tar.h"

namespace tilewright::runtime {

/// An archive of these members, in order.
inline std::string pack(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string bytes;
  for (const auto& [name, content] : members)
    bytes += *tar_header(name, content.size()) + content +
             std::string(tar_padding(content.size()), '\0');
  return bytes + std::string(kTarEnd, '\0');
}

/// Bytes at a 64-byte boundary, as a mapped file has them.
inline MappedFile in_memory(std::string_view bytes) {
  auto array = std::make_shared<Array>(DType::U8, Shape{static_cast<int64_t>(bytes.size())});
  if (!bytes.empty()) std::memcpy(array->data(), bytes.data(), bytes.size());
  const std::span<const char> view(static_cast<const char*>(array->data()), bytes.size());
  return {std::move(array), view};
}

}  // namespace tilewright::runtime
