// The fuzz target of tests/fuzz/ir_text_fuzz.cc over seeded mutations of real programs.
#include <gtest/gtest.h>

#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/testing/fuzz_text.h"
#include "tilewright/ir/testing/random_func.h"
#include "tilewright/ir/text.h"

namespace tilewright {
namespace {

constexpr std::string_view kPieces[] = {
    "for",     "block",        "(",    ")",     "{",     "}",     "[",    "]",   " in ",
    "-",       "999999999999", "1e99", "`",     "\"",    "\\x",   "..",   "@(",  "exact",
    "strides", " = {",         "0",    "inf",   "nan(",  "0x7ff", ",",    ":",   ":+",
    "alloc",   "select",       "i8",   "where", "call ", "if",    "else", "f32", "\n",
    "//",      "max=",         "\x80", "f32("};

std::string mutate(std::string text, Rng& rng) {
  const int64_t edits = rng.between(1, 4);
  for (int64_t n = 0; n < edits && !text.empty(); ++n) {
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
    const auto length = static_cast<size_t>(rng.between(1, 12));
    switch (rng.below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[rng.below(std::size(kPieces))]);
        break;
      case 2: {  // another part of the same text
        const auto from = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
        const std::string part = text.substr(from, length);
        text.insert(at, part);
        break;
      }
      case 3:
      case 4:  // a digit becomes another: often still a program
        if (const size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos)
          text[digit] = static_cast<char>('0' + rng.below(10));
        break;
      default:
        text[at] = static_cast<char>(rng.below(256));
    }
  }
  return text;
}

TEST(TextFuzzSlow, MutatedProgramsNeverCrash) {
  std::vector<std::string> seeds;
  for (const std::string_view text : {testing::kMatmul, testing::kConv, testing::kConvScheduled,
                                      testing::kSoftmax, testing::kLstm, testing::kOddities})
    seeds.emplace_back(text);
  Rng rng(2024);
  for (int n = 0; n < 20; ++n) seeds.push_back(print(testing::random_func(rng)));
  int parsed = 0;
  for (int n = 0; n < 6000; ++n) {
    const std::string text = mutate(seeds[rng.below(static_cast<int64_t>(seeds.size()))], rng);
    parsed += testing::fuzz_text(text);
  }
  EXPECT_GT(parsed, 100) << "mutations should leave some programs whole";
}

}  // namespace
}  // namespace tilewright
