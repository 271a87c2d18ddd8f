// Counts in messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tilewright {

/// `1 node`, `2 nodes`; `plural` for nouns that take no s.
template <class Integer>
std::string counted(Integer count, std::string_view noun, std::string_view plural = {}) {
  if (count == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", count, noun) : fmt::format("{} {}", count, plural);
}

}  // namespace tilewright
