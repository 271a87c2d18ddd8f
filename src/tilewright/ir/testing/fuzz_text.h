// What must hold for any text whatever: shared by the libFuzzer harness and the seeded test.
#pragma once

#include <string_view>

#include "tilewright/base/check.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright::testing {

/// Parses `text`; whatever parses prints to text that parses to the same programs, and can be
/// verified without a crash. True if it parsed. throws: InternalError if a law is broken.
inline bool fuzz_text(std::string_view text) {
  const auto funcs = parse_funcs(text);
  if (!funcs) {
    TW_CHECK(funcs.error().kind == ErrorKind::Parse && !funcs.error().place.empty());
    return false;
  }
  for (const Func& f : *funcs) {
    const std::string printed = print(f);
    const auto again = parse_func(printed);
    TW_CHECK(again.has_value(), "does not parse again: {}\n{}", to_string(again.error()), printed);
    TW_CHECK(equal(f, *again), "parses to another program:\n{}", printed);
    TW_CHECK(print(*again) == printed, "prints differently:\n{}", printed);
    for (const Stage stage : {Stage::Tensor, Stage::Scheduled, Stage::Lowered})
      static_cast<void>(verify(f, stage));
  }
  return true;
}

}  // namespace tilewright::testing
