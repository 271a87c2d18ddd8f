// The small language of rules in space files: comparisons of arithmetic over keys.
//
//   rows * cols <= 256
//   intrinsic == gemm or rows == cols
//   not (banks > 4 and bank_bytes == 64)
//
//   rule       = part { "or" part };      part = fact { "and" fact };      fact = "not" fact |
//   comparison comparison = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ] sum        =
//   product { ("+" | "-") product };   product = unary { ("*" | "/" | "%") unary } unary      = "-"
//   unary | NUMBER | KEY | WORD | "(" rule ")"
//
// Numbers are real, so 5 / 2 is 2.5. Keys that are words (`links`) can be compared with == and !=.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/codesign/generator.h"

namespace tilewright::codesign {

/// Where a text is no rule, and why; `offset` in bytes.
struct RuleError {
  size_t offset = 0;
  std::string what, fix;
};

/// A rule, or a sum that a value is set to: parsed and typed once, evaluated for many points.
class SpaceRule {
 public:
  /// True or false.
  static tl::expected<SpaceRule, RuleError> parse_condition(std::string_view text,
                                                            const std::vector<SpaceKey>& keys);
  /// A number.
  static tl::expected<SpaceRule, RuleError> parse_number(std::string_view text,
                                                         const std::vector<SpaceKey>& keys);

  /// requires: values of the keys that it was parsed for. Conditions are 0 or 1.
  double evaluate(const Values& values) const { return evaluate(root_, values); }
  bool holds(const Values& values) const { return evaluate(values) != 0; }
  const std::string& text() const { return text_; }
  /// Positions of the keys it reads, each once, in order.
  std::vector<int> reads() const;

 private:
  friend class RuleParser;
  enum class Op { Number, Key, Neg, Not, Add, Sub, Mul, Div, Rem, Eq, Ne, Lt, Le, Gt, Ge, And, Or };
  struct Node {
    Op op = Op::Number;
    double number = 0;  ///< of Key its position
    int left = -1, right = -1;
  };
  double evaluate(int node, const Values& values) const;

  std::string text_;
  std::vector<Node> nodes_;
  int root_ = -1;
};

}  // namespace tilewright::codesign
