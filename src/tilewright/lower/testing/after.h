// For tests of passes: the text of a program after some of them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::lower::testing {

inline Func lower_parsed(std::string_view text) {
  Result<Func> func = parse_func(text);
  EXPECT_TRUE(func) << (func ? "" : to_string(func.error()));
  return func ? *func : Func{};
}

/// The program after these passes, separated by commas; or the error.
inline std::string after(const std::string& passes, std::string_view text) {
  const auto out =
      run_passes(lower_parsed(text), pass_names(passes), {.verify_each = true, .observer = {}});
  return out ? print(*out) : to_string(out.error());
}

}  // namespace tilewright::lower::testing
