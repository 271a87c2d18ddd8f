// Checks for bugs: they throw InternalError, which only main, fuzzers and candidate guards catch.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace tilewright {

/// A bug in Tilewright, never the fault of the input.
class InternalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void raise_internal_error(const char* file, int line, const char* condition,
                                       const std::string& message);

}  // namespace tilewright

/// TW_CHECK(condition) or TW_CHECK(condition, "format {}", values...).
#define TW_CHECK(condition, ...)                                         \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::tilewright::raise_internal_error(__FILE__, __LINE__, #condition, \
                                         ::fmt::format("" __VA_ARGS__)); \
  } while (false)
