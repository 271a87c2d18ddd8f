// What harnesses share: the input as text, and how a broken promise is reported.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tilewright/base/result.h"

namespace tilewright::fuzz {

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

[[noreturn]] inline void report(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

[[noreturn]] inline void report_error(const std::string& what, const Error& error) {
  report(what + ": " + to_string(error));
}

/// What `parse` accepts must `print` to a text that it accepts again, with the same text.
template <class Parse, class Print>
void round_trip(std::string_view text, Parse&& parse, Print&& print) {
  const auto first = parse(text);
  if (!first) {
    if (first.error().what.empty()) report("an error without words");
    return;
  }
  const std::string printed = print(*first);
  const auto again = parse(std::string_view(printed));
  if (!again) report("what was printed is not accepted: " + again.error().what + "\n" + printed);
  if (print(*again) != printed) report("it does not print back:\n" + printed);
}

}  // namespace tilewright::fuzz
