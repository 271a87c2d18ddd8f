#include "tilewright/codesign/space_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "tilewright/base/names.h"
#include "tilewright/base/scanner.h"

namespace tilewright::codesign {

/// Recursive descent. The first mistake is thrown within this file and caught in `run`.
class RuleParser {
 public:
  RuleParser(std::string_view text, const std::vector<SpaceKey>& keys)
      : scanner_(text), keys_(keys) {
    rule_.text_ = text;
  }

  tl::expected<SpaceRule, RuleError> run(bool condition) {
    try {
      const Typed all = parse_or();
      if (!scanner_.at_end()) refuse(fmt::format("expected the end, found {}", scanner_.found()));
      if (!condition) need(all, Type::Number);
      if (condition && all.type != Type::Truth)
        throw RuleError{0, "a rule is a comparison, as in `rows <= cols`", {}};
      rule_.root_ = all.node;
      return std::move(rule_);
    } catch (RuleError& error) {
      return tl::unexpected<RuleError>(std::move(error));
    }
  }

 private:
  using Op = SpaceRule::Op;
  /// Of Word: a key whose values are words; of Literal: a word of some key, not known yet of which.
  enum class Type { Number, Truth, Word, Literal };
  struct Typed {
    int node = -1;
    Type type = Type::Number;
    size_t offset = 0;
    int key = -1;         ///< of Word
    std::string literal;  ///< of Literal
  };
  static constexpr int kDeepest = 100;

  [[noreturn]] void refuse(std::string what, std::string fix = {}) const {
    const Token& token = scanner_.peek();
    if (token.kind == Token::Kind::Bad) what = token.value;
    throw RuleError{token.offset, std::move(what), std::move(fix)};
  }
  int add(Op op, int left = -1, int right = -1, double number = 0) {
    rule_.nodes_.push_back({op, number, left, right});
    return static_cast<int>(rule_.nodes_.size()) - 1;
  }

  void need(const Typed& part, Type type) const {
    if (part.type == type) return;
    if (part.type == Type::Literal) unknown(part);
    if (part.type == Type::Word)
      throw RuleError{part.offset,
                      fmt::format("`{}` is a word: it can be compared with == and !=",
                                  keys_[static_cast<size_t>(part.key)].name),
                      {}};
    throw RuleError{part.offset,
                    type == Type::Number ? "a comparison stands where a number must be"
                                         : "a number stands where a comparison must be",
                    {}};
  }
  [[noreturn]] void unknown(const Typed& literal) const {
    std::vector<std::string> names;
    for (const SpaceKey& key : keys_) names.push_back(key.name);
    std::string fix = did_you_mean(literal.literal, names);
    if (fix.empty()) fix = fmt::format("the keys are {}", fmt::join(names, ", "));
    throw RuleError{literal.offset, fmt::format("there is no key `{}`", literal.literal), fix};
  }

  /// Comparisons of a key with one of its words; the word's position takes its place.
  Typed compare_words(Op op, Typed left, Typed right, size_t at) {
    if (left.type == Type::Literal && right.type == Type::Word) std::swap(left, right);
    if (left.type == Type::Literal) unknown(left);
    if (left.type != Type::Word) {
      if (right.type == Type::Literal) unknown(right);
      std::swap(left, right);
    }
    const SpaceKey& key = keys_[static_cast<size_t>(left.key)];
    if (op != Op::Eq && op != Op::Ne)
      throw RuleError{at, fmt::format("words like `{}` have no order", key.name), {}};
    if (right.type != Type::Literal)
      throw RuleError{
          right.offset, fmt::format("`{}` is one of {}", key.name, fmt::join(key.words, ", ")), {}};
    for (size_t w = 0; w < key.words.size(); ++w)
      if (key.words[w] == right.literal)
        return {add(op, left.node, add(Op::Number, -1, -1, static_cast<double>(w))),
                Type::Truth,
                left.offset,
                -1,
                {}};
    std::string fix = did_you_mean(right.literal, key.words);
    if (fix.empty()) fix = fmt::format("it is one of {}", fmt::join(key.words, ", "));
    throw RuleError{right.offset, fmt::format("`{}` cannot be `{}`", key.name, right.literal), fix};
  }

  Typed binary(Op op, const Typed& left, const Typed& right, Type operands, Type result) {
    need(left, operands);
    need(right, operands);
    return {add(op, left.node, right.node), result, left.offset, -1, {}};
  }

  Typed parse_or() {
    if (++depth_ > kDeepest) refuse("this rule is nested too deeply");
    Typed left = parse_and();
    while (scanner_.accept_word("or"))
      left = binary(Op::Or, left, parse_and(), Type::Truth, Type::Truth);
    --depth_;
    return left;
  }
  Typed parse_and() {
    Typed left = parse_not();
    while (scanner_.accept_word("and"))
      left = binary(Op::And, left, parse_not(), Type::Truth, Type::Truth);
    return left;
  }
  Typed parse_not() {
    if (++depth_ > kDeepest) refuse("this rule is nested too deeply");
    const size_t at = scanner_.offset();
    Typed inner;
    if (scanner_.accept_word("not")) {
      inner = parse_not();
      need(inner, Type::Truth);
      inner = {add(Op::Not, inner.node), Type::Truth, at, -1, {}};
    } else {
      inner = parse_comparison();
    }
    --depth_;
    return inner;
  }
  Typed parse_comparison() {
    const Typed left = parse_sum();
    constexpr std::pair<std::string_view, Op> kSigns[] = {{"==", Op::Eq}, {"!=", Op::Ne},
                                                          {"<=", Op::Le}, {">=", Op::Ge},
                                                          {"<", Op::Lt},  {">", Op::Gt}};
    for (const auto& [sign, op] : kSigns) {
      const size_t at = scanner_.offset();
      if (!scanner_.accept_symbol(sign)) continue;
      const Typed right = parse_sum();
      const auto worded = [](const Typed& t) {
        return t.type == Type::Word || t.type == Type::Literal;
      };
      if (worded(left) || worded(right)) return compare_words(op, left, right, at);
      return binary(op, left, right, Type::Number, Type::Truth);
    }
    if (scanner_.at_symbol("=")) refuse("`=` is no comparison", "write ==");
    return left;
  }
  Typed parse_sum() {
    Typed left = parse_product();
    for (;;) {
      if (scanner_.accept_symbol("+"))
        left = binary(Op::Add, left, parse_product(), Type::Number, Type::Number);
      else if (scanner_.accept_symbol("-"))
        left = binary(Op::Sub, left, parse_product(), Type::Number, Type::Number);
      else
        return left;
    }
  }
  Typed parse_product() {
    Typed left = parse_unary();
    for (;;) {
      if (scanner_.accept_symbol("*"))
        left = binary(Op::Mul, left, parse_unary(), Type::Number, Type::Number);
      else if (scanner_.accept_symbol("/"))
        left = binary(Op::Div, left, parse_unary(), Type::Number, Type::Number);
      else if (scanner_.accept_symbol("%"))
        left = binary(Op::Rem, left, parse_unary(), Type::Number, Type::Number);
      else
        return left;
    }
  }
  Typed parse_unary() {
    if (++depth_ > kDeepest) refuse("this rule is nested too deeply");
    const size_t at = scanner_.offset();
    Typed found;
    if (scanner_.accept_symbol("-")) {
      const Typed inner = parse_unary();
      need(inner, Type::Number);
      found = {add(Op::Neg, inner.node), Type::Number, at, -1, {}};
    } else if (scanner_.accept_symbol("(")) {
      found = parse_or();
      found.offset = at;
      if (!scanner_.accept_symbol(")"))
        refuse(fmt::format("expected `)`, found {}", scanner_.found()));
    } else {
      found = parse_leaf();
    }
    --depth_;
    return found;
  }
  Typed parse_leaf() {
    const Token token = scanner_.peek();
    const bool number = token.kind == Token::Kind::Int || token.kind == Token::Kind::Float;
    if ((!number && token.kind != Token::Kind::Name) || !token.suffix.empty())
      refuse(fmt::format("expected a number or a key, found {}", scanner_.found()));
    scanner_.next();
    if (number) {
      const double value = std::strtod(std::string(token.text).c_str(), nullptr);
      return {add(Op::Number, -1, -1, value), Type::Number, token.offset, -1, {}};
    }
    for (size_t k = 0; k < keys_.size(); ++k)
      if (keys_[k].name == token.value)
        return {add(Op::Key, -1, -1, static_cast<double>(k)),
                keys_[k].words.empty() ? Type::Number : Type::Word,
                token.offset,
                static_cast<int>(k),
                {}};
    return {-1, Type::Literal, token.offset, -1, token.value};
  }

  Scanner scanner_;
  const std::vector<SpaceKey>& keys_;
  SpaceRule rule_;
  int depth_ = 0;
};

tl::expected<SpaceRule, RuleError> SpaceRule::parse_condition(std::string_view text,
                                                              const std::vector<SpaceKey>& keys) {
  return RuleParser(text, keys).run(true);
}

tl::expected<SpaceRule, RuleError> SpaceRule::parse_number(std::string_view text,
                                                           const std::vector<SpaceKey>& keys) {
  return RuleParser(text, keys).run(false);
}

std::vector<int> SpaceRule::reads() const {
  std::set<int> found;
  for (const Node& node : nodes_)
    if (node.op == Op::Key) found.insert(static_cast<int>(node.number));
  return {found.begin(), found.end()};
}

double SpaceRule::evaluate(int at, const Values& values) const {
  const Node& node = nodes_[static_cast<size_t>(at)];
  const auto left = [&] { return evaluate(node.left, values); };
  const auto right = [&] { return evaluate(node.right, values); };
  switch (node.op) {
    case Op::Number:
      return node.number;
    case Op::Key:
      return values[static_cast<size_t>(node.number)];
    case Op::Neg:
      return -left();
    case Op::Not:
      return left() == 0 ? 1 : 0;
    case Op::Add:
      return left() + right();
    case Op::Sub:
      return left() - right();
    case Op::Mul:
      return left() * right();
    case Op::Div:
      return left() / right();
    case Op::Rem:
      return std::fmod(left(), right());
    case Op::Eq:
      return left() == right() ? 1 : 0;
    case Op::Ne:
      return left() != right() ? 1 : 0;
    case Op::Lt:
      return left() < right() ? 1 : 0;
    case Op::Le:
      return left() <= right() ? 1 : 0;
    case Op::Gt:
      return left() > right() ? 1 : 0;
    case Op::Ge:
      return left() >= right() ? 1 : 0;
    case Op::And:
      return left() != 0 && right() != 0 ? 1 : 0;
    case Op::Or:
      return left() != 0 || right() != 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace tilewright::codesign
